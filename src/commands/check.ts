// `peage check`: validates a configuration as `start` would, and reports every problem at once.
import { Command } from 'commander'
import { type ConfigOption, withConfigurationAlone } from './config-option.ts'
import type { Io } from './io.ts'
import { print } from './print.ts'

export function checkCommand(io: Io): Command {
  return withConfigurationAlone(new Command('check'))
    .description('validate the configuration without starting')
    .action(async ({ config: file }: ConfigOption) => {
      const { warningLinesOf } = await import('../config/diagnostics.ts')
      const { readTracing } = await import('../observability/tracing/open.ts')
      const { fileReader, openConfigFile, orExit } = await import('./read-config.ts')
      const { traces, problems } = readTracing(io.env, fileReader(io))
      const { config, warnings } = orExit(openConfigFile(io, file).load(), io.stdout, problems)
      const lines = [...warningLinesOf(warnings), ...(traces?.warnings ?? []).map(line => `warning: ${line}`)]
      const { routes, upstreams } = config
      const counts = `${count(routes.length, 'route')}, ${count(Object.keys(upstreams).length, 'upstream')}`
      await print(
        io.stdout,
        [...lines, `${file}: ok (${counts})`].map(line => `${line}\n`),
      )
    })
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
