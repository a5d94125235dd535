// `npm run mutate -- ROOM [--own] [FILE …]` runs the mutation tests of a room (a folder of src), or of some files of
// the room. With `--own`, only the fast tests of the room run.
import { Stryker } from '@stryker-mutator/core'

const [room, ...rest] = process.argv.slice(2)
if (room === undefined) throw new Error('usage: npm run mutate -- ROOM [--own] [FILE …]')
const files = rest.filter(word => word !== '--own')
process.env.MUTATED_ROOM = room
process.env.PROPERTY_RUNS ??= '0.02'

// Without `--own`, there are two runs. The second run reads the results of the first run, and skips mutants that the
// room’s own tests have killed.
for (const reach of rest.includes('--own') ? ['own'] : ['own', 'further']) {
  process.env.JUDGES = reach
  await new Stryker({
    mutate: files.length === 0 ? [`src/${room}/**/*.ts`] : files,
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'test/mutation/vitest.config.ts' },
    coverageAnalysis: 'perTest',
    // No file has the name `none.json`, so Stryker reads no tsconfig. Stryker cannot read the real tsconfig.json,
    // because TypeScript 7 has no API for that.
    tsconfigFile: 'none.json',
    disableTypeChecks: false,
    incremental: true,
    incrementalFile: `reports/mutation/${room}.json`,
    tempDirName: 'reports/sandbox',
    ignorePatterns: ['dist', 'docs', 'data', 'reports', '*.tgz'],
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { logTests: false, reportTests: false, allowColor: false },
    concurrency: 2,
    // The timeout is long, because the machine may be busy. Stryker still detects endless loops early, because it
    // counts how often the mutated code runs.
    timeoutMS: 60_000,
    warnings: { slow: false, unknownOptions: true, preprocessorErrors: true, unserializableOptions: true },
  }).runMutationTest()
}
