// `peage migrate`: brings the database up to date and exits; safe when many replicas run it at once.
import { Command } from 'commander'
import type { Logger } from 'pino'
import { systemClock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import { type ConfigOption, withConfigurationAlone } from './config-option.ts'
import type { Io } from './io.ts'
import { print } from './print.ts'

export function migrateCommand(io: Io): Command {
  return withConfigurationAlone(new Command('migrate'))
    .description('apply what is new in migrations/ and stop')
    .action(async ({ config: file }: ConfigOption) => {
      const { createLogger } = await import('../observability/logger.ts')
      const { readConfig } = await import('./read-config.ts')
      const { inPlainWords } = await import('./store-failure.ts')
      const { storage, server } = readConfig(io, file, io.stderr)
      const logger = await createLogger(server.log, io.stderr)
      // Redis has nothing to migrate.
      const stores = { storage: { ...storage, redis: '' } }
      const applied = await migrateStores(stores, logger).catch(error => {
        throw inPlainWords(error, storage, file)
      })
      await print(io.stdout, [`${applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`}\n`])
    })
}

/** @returns the names of the applied migrations */
async function migrateStores(stores: Pick<Config, 'storage'>, logger: Logger): Promise<string[]> {
  const { createFailureLog } = await import('../storage/failure-log.ts')
  const { openStorage } = await import('../storage/open.ts')
  const { openFolder } = await import('../composition/open-folder.ts')
  const failureLog = createFailureLog({ logger, clock: systemClock })
  const backing = await openStorage(stores, { logger, failureLog, clock: systemClock }, openFolder)
  try {
    return await backing.migrate()
  } finally {
    await backing.close()
  }
}
