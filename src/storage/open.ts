// Opens what the configuration names: the only place where embedded and production differ.
import type { Clock } from '../clock.ts'
import type { StorageGauges } from '../observability/metrics/gauges.ts'
import type { StoreSpans } from '../observability/tracing/tracing.ts'
import type { Database } from './database.ts'
import type { FailureLog } from './failure-log.ts'
import type { MigrationLog } from './migrate.ts'
import type { Listen } from './notifications.ts'
import { openPostgres } from './postgres/postgres.ts'
import { postgresListener } from './postgres/postgres-listener.ts'
import { type CreateRateLimiter, createRateLimiter } from './rate-limiter.ts'
import { openRedis, type RedisAddress } from './redis/redis.ts'
import type { ScriptRunner } from './redis/redis-scripts.ts'
import { tracedDatabase, tracedScriptRunner } from './traced-storage.ts'

/** The part of the configuration that is read here (CONTRACT §2). */
export interface StorageConfig {
  storage: {
    /** Null or empty: embedded. */
    postgres: string | null
    /** Null or empty: as `postgres`. */
    postgres_listen: string | null
    /** Connections at most, per process. */
    pool: number
    /** Null or empty: none. */
    redis: RedisAddress | null
    data_dir: string
  }
}

/** pino's shape, as far as it is used here. */
interface Logger {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}

export interface Storage {
  readonly database: Database
  /** Hears what the database's triggers say. */
  readonly listen: Listen
  /** Redis, `undefined` where none is configured. */
  readonly scriptRunner: ScriptRunner | undefined
  /** Replicas that share Redis share a limit by its name. */
  readonly createRateLimiter: CreateRateLimiter
  /** Whether each store answers now; a rejection is a no. */
  readonly checks: {
    postgres(): Promise<boolean>
    redis: (() => Promise<boolean>) | undefined
  }
  /** How the stores stand as far as is known here, without asking them. */
  readonly gauges: StorageGauges
  /** Applies what is new in `migrations/`; safe when many replicas run it at once. Returns the names applied. */
  migrate(): Promise<string[]>
  /**
   * Opens the connections that requests will want, so that no first rush waits for them. Those that Postgres has no room
   * for are left to be opened when they are needed, with a line in the log. Never rejects.
   */
  warmUp(): Promise<void>
  /** Ends the connections and gives up the data folder. */
  close(): Promise<void>
}

interface Dependencies {
  logger: Logger
  failureLog: FailureLog
  clock: Clock
  /** Put around what the stores are asked. */
  spans?: StoreSpans | undefined
}

/** How long a start waits for Redis before it goes on without, in milliseconds. */
const REDIS_START_TIMEOUT_MS = 1_000

/**
 * Opens the stores. A Redis that is down is picked up when it comes; a Postgres that is down shows at the
 * first statement (`migrate`).
 * @throws DataDirLocked where another process has the data folder; StorageError where it cannot be opened
 */
export async function openStorage(
  { storage }: StorageConfig,
  { logger, failureLog, clock, spans }: Dependencies,
): Promise<Storage> {
  const { database, listen } = storage.postgres
    ? {
        database: openPostgres({
          url: storage.postgres,
          maxConnections: storage.pool,
          onError: error => failureLog('idle database connection lost', error),
        }),
        listen: postgresListener(storage.postgres_listen || storage.postgres),
      }
    : await openEmbeddedStorage(storage.data_dir)
  const redis = storage.redis
    ? openRedis(storage.redis, {
        onUp: () => logger.info({}, 'redis is up'),
        onDown: reason =>
          logger.warn(
            { reason },
            'redis is down: rate limits are counted in memory, usage in the database alone',
          ),
      })
    : undefined
  await redis?.whenUp(REDIS_START_TIMEOUT_MS)
  const scriptRunner = redis && spans ? tracedScriptRunner(redis, spans) : redis
  const log: MigrationLog = (level, line) => logger[level]({}, line)
  return {
    database: spans === undefined ? database : tracedDatabase(database, spans),
    listen,
    scriptRunner,
    createRateLimiter: (name, limit) => createRateLimiter(name, limit, { clock, scriptRunner }),
    checks: {
      postgres: async () => (await database.query('select 1')).length === 1,
      redis: scriptRunner && (() => scriptRunner.ping()),
    },
    gauges: {
      postgresPool: database.kind === 'postgres' ? database.poolState : undefined,
      isRedisUp: scriptRunner && (() => scriptRunner.isUp),
    },
    migrate: () => database.migrate(log),
    async warmUp() {
      if (database.kind !== 'postgres') return
      const { open, reason } = await database.warmUp()
      if (reason === undefined) return
      const fields = { reason, open, pool: storage.pool }
      logger.warn(fields, 'postgres pool only partly warmed up: the remaining connections open on demand')
    },
    async close() {
      await scriptRunner?.close()
      await database.close()
    },
  }
}

/** Its packages are loaded where they are used alone. */
async function openEmbeddedStorage(dir: string) {
  const { openEmbedded } = await import('./pglite/pglite.ts')
  const database = await openEmbedded({ dir })
  return { database, listen: database.listen }
}
