// `peage start`: runs a gateway until a signal ends it.
import { Command } from 'commander'
import { type ConfigOption, withConfigurationAlone } from './config-option.ts'
import type { Io } from './io.ts'

export function startCommand(io: Io): Command {
  return withConfigurationAlone(new Command('start'))
    .description('migrate the database, then serve until SIGTERM or SIGINT')
    .action(async ({ config: file }: ConfigOption) => {
      const { runGateway } = await import('./run-gateway.ts')
      await runGateway(io, file)
    })
}
