// `peage check`: says whether a configuration would be started with, and if not, everything that stands against it.
import { Command } from 'commander'
import {
  type ConfigurationOption,
  configurationFile,
  orProblems,
  withConfiguration,
} from './configuration.ts'
import { readTracing } from './environment.ts'
import type { Io } from './io.ts'

export function checkCommand(io: Io): Command {
  return withConfiguration(new Command('check'))
    .description('validate the configuration without starting')
    .action(({ config: file }: ConfigurationOption) => {
      const { problems } = readTracing(io.env)
      const { config } = orProblems(configurationFile(io, file).load(), io.stdout, problems)
      const { routes, upstreams } = config
      const counts = `${count(routes.length, 'route')}, ${count(Object.keys(upstreams).length, 'upstream')}`
      io.stdout.write(`${file}: ok (${counts})\n`)
    })
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
