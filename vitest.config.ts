import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/note-reached.ts'],
    // Tests wait half of the time. On two cores, two workers leave the CPU idle, and with six workers tests time out.
    maxWorkers: 4,
    // Test files share the loaded packages. With isolation, each file loads them again, which took 25 % of the time.
    isolate: false,
    // Most code runs only a few times, so optimizing it takes longer than it saves. V8 optimizes later than by default.
    execArgv: ['--interrupt-budget=1000000', '--max-semi-space-size=64'],
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The time limit of `expect.poll`. The default of 1 s is too short on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    // `npm run coverage` counts only code that runs in the test processes, not in programs that tests start.
    coverage: {
      include: ['src/**'],
      reporter: ['text', 'html'],
      reportsDirectory: 'node_modules/.cache/peage-coverage',
    },
  },
})
