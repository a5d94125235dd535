// Defines `peage test`, which runs the test cases of a configuration without network or stores.
import { Command, CommanderError } from 'commander'
import { systemClock } from '../../clock.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import { reportAsJson, reportAsText } from './print-results.ts'

interface Options extends ConfigOption {
  readonly json?: true
}

export function testCommand(io: Io): Command {
  const test = new Command('test')
    .description('Run the test cases of the configuration, or of a separate file')
    .argument(
      '[cases]',
      'YAML file with test cases; if omitted, the command runs the test cases in the configuration',
    )
    .option('--json', 'print JSON')
  return withConfigOption(test).action(async (file: string | undefined, { config: name, json }: Options) => {
    const { loadCases } = await import('../../config/test-cases.ts')
    const { createExplain } = await import('../../explain/explain.ts')
    const { runCases } = await import('../../explain/run-cases.ts')
    const { fileReader, loadOrExit, orExit } = await import('../read-config.ts')
    const loaded = loadOrExit(io, name, io.stderr)
    const { cases } =
      file === undefined
        ? loaded
        : orExit(loadCases({ file, env: io.env, readFile: fileReader(io) }, loaded.config.plans), io.stderr)
    // Success without test cases would be misleading.
    if (cases.length === 0) throw new Error(`${file ?? name} contains no test cases`)
    const report = await runCases(loaded.config, await createExplain(loaded.config, systemClock), cases)
    await print(io.stdout, [json ? reportAsJson(report) : reportAsText(report)])
    if (report.results.some(({ misses }) => misses.length > 0)) {
      throw new CommanderError(1, 'peage.test', 'some cases failed')
    }
  })
}
