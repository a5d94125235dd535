import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/note-reached.ts'],
    // The processor limits the speed: on two cores, six workers gained 5 % over two and ran into time limits.
    maxWorkers: 2,
    // To load every package anew for each file took a quarter of the run's time.
    isolate: false,
    // Most code runs a few times: to optimise it took more of the processor than it spared.
    execArgv: ['--no-opt', '--max-semi-space-size=64'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // `npm run coverage`: of what runs in the tests' own processes, not in the programs that they start.
    coverage: {
      include: ['src/**'],
      reporter: ['text', 'html'],
      reportsDirectory: 'node_modules/.cache/peage-coverage',
    },
  },
})
