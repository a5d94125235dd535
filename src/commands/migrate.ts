// `peage migrate`: brings the database up to date and stops; safe when many replicas run it at once.
import { Command } from 'commander'
import { openBacking } from '../backing/open.ts'
import { systemClock } from '../clock.ts'
import { createLogger } from '../log.ts'
import { type ConfigurationOption, readConfiguration, withConfiguration } from './configuration.ts'
import type { Io } from './io.ts'

export function migrateCommand(io: Io): Command {
  return withConfiguration(new Command('migrate'))
    .description('apply what is new in migrations/ and stop')
    .action(async ({ config: file }: ConfigurationOption) => {
      const { storage, server } = readConfiguration(io, file, io.stderr)
      const logger = createLogger(server.log, io.stderr)
      // Redis has nothing to migrate.
      const stores = { storage: { ...storage, redis: null } }
      const backing = await openBacking(stores, { logger, clock: systemClock })
      try {
        const applied = await backing.migrate()
        const report = applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`
        io.stdout.write(`${report}\n`)
      } finally {
        await backing.close()
      }
    })
}
