import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/note-reached.ts'],
    // Half of the time, a test waits. On two cores, two workers leave the CPU idle, and six run into timeouts.
    maxWorkers: 4,
    // With isolation, loading all packages for each file took a quarter of the time.
    isolate: false,
    // Most code runs only a few times, so optimizing it takes more CPU than it saves.
    execArgv: ['--no-opt', '--max-semi-space-size=64'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // `npm run coverage` only covers code in the test processes, not in programs that tests start.
    coverage: {
      include: ['src/**'],
      reporter: ['text', 'html'],
      reportsDirectory: 'node_modules/.cache/peage-coverage',
    },
  },
})
