// `peage check`: says whether a configuration would be started with, and if not, everything that stands against it.
import { Command } from 'commander'
import { type ConfigurationOption, readConfiguration, withConfiguration } from './configuration.ts'
import type { Io } from './io.ts'

export function checkCommand(io: Io): Command {
  return withConfiguration(new Command('check'))
    .description('validate the configuration without starting')
    .action(({ config: file }: ConfigurationOption) => {
      const { routes, upstreams } = readConfiguration(io, file, io.stdout, true)
      const counts = `${count(routes.length, 'route')}, ${count(Object.keys(upstreams).length, 'upstream')}`
      io.stdout.write(`${file}: ok (${counts})\n`)
    })
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
