// Opens the configured stores. Only this file distinguishes embedded and production setups.
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import type { StorageGauges } from '../observability/metrics/gauges.ts'
import { createStateLog } from '../observability/state-log.ts'
import type { StoreSpans } from '../observability/tracing/tracing.ts'
import type { Listen } from './change-feed.ts'
import { type Database, type Queryable, textOf } from './database.ts'
import type { FailureLog } from './failure-log.ts'
import type { MigrationLog } from './migrate.ts'
import type { EmbeddedDatabase } from './pglite/pglite.ts'
import { createPostgresState } from './postgres/postgres-state.ts'
import { type CreateRateLimiter, createRateLimiter } from './rate-limiter.ts'
import type { ScriptRunner } from './redis/redis-scripts.ts'

interface Logger {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}

/** Each check resolves to `true` if the store responds now. A rejected promise counts as `false`. */
export interface StoreChecks {
  postgres(): Promise<boolean>
  /** Absent if no Redis is configured. */
  redis: (() => Promise<boolean>) | undefined
}

export interface Storage {
  readonly database: Database
  readonly listen: Listen
  /** Redis; `undefined` if none is configured. */
  readonly scriptRunner: ScriptRunner | undefined
  /**
   * Creates a rate limiter. If several replicas use the same Redis, limits with the same name count their requests
   * together.
   */
  readonly createRateLimiter: CreateRateLimiter
  readonly checks: StoreChecks
  /** The state of the stores as far as it is known without a query. */
  readonly gauges: StorageGauges
  /** Applies pending migrations. Many replicas may call it at once. @returns the names of the applied migrations */
  migrate(): Promise<string[]>
  /**
   * Opens the connections of the pool, so that the first burst of requests does not wait for them. If Postgres has no
   * room for a connection, a warning is logged, and the connection is opened on demand. Never rejects.
   */
  warmUp(): Promise<void>
  /** Closes the connections and releases the data folder. */
  close(): Promise<void>
}

interface Dependencies {
  logger: Logger
  failureLog: FailureLog
  clock: Clock
  spans?: StoreSpans | undefined
  /**
   * The time limit in milliseconds to connect to Postgres. The default is short, because requests wait for the
   * connection.
   */
  connectTimeoutMs?: number
}

export type OpenFolder = (dir: string) => Promise<EmbeddedDatabase>

/** How long a start waits for Redis before it continues without Redis. */
const REDIS_START_TIMEOUT_MS = 1_000

/**
 * Opens the stores. If Redis is down, it is used as soon as it is up. If Postgres is down, the stores still open, but
 * the first statement fails (usually in `migrate`).
 * @throws DataDirLocked when another process has locked the data folder
 * @throws DataDirOfAnotherPostgres when another major version of Postgres wrote the data folder
 * @throws StorageError when the data folder cannot be opened
 * @throws ScriptError when Redis refuses the configured database
 */
export async function openStorage(
  { storage }: Pick<Config, 'storage'>,
  dependencies: Dependencies,
  openFolder: OpenFolder,
): Promise<Storage> {
  const opened = storage.postgres
    ? await openProductionDatabase(storage, dependencies)
    : await openEmbeddedStorage(storage.data_dir, openFolder)
  try {
    return await withRedis(storage, opened, dependencies)
  } catch (error) {
    // If the database stayed open, it would keep the folder locked and the process running.
    await opened.database.close()
    throw error
  }
}

type OpenDatabase = Awaited<ReturnType<typeof openProductionDatabase | typeof openEmbeddedStorage>>

async function withRedis(
  storage: Config['storage'],
  { database, listen }: OpenDatabase,
  { logger, failureLog, clock, spans }: Dependencies,
): Promise<Storage> {
  const redis = storage.redis
    ? (await import('./redis/redis.ts')).openRedis(storage.redis, {
        onUp: () => logger.info({}, 'redis is up'),
        onDown: reason =>
          logger.warn(
            { reason },
            'redis is down; rate limits are counted in memory, daily uses only in the database',
          ),
      })
    : undefined
  try {
    await redis?.whenUp(REDIS_START_TIMEOUT_MS)
  } catch (error) {
    await redis?.close()
    throw error
  }
  const onFailure = (error: unknown) => failureLog('rate limits counted in the memory of this process', error)
  const scriptRunner = redis && spans ? tracedScriptRunner(redis, spans) : redis
  const log: MigrationLog = (level, line) => logger[level]({}, line)
  return {
    database: spans === undefined ? database : tracedDatabase(database, spans),
    listen,
    scriptRunner,
    createRateLimiter: (name, limit) => createRateLimiter(name, limit, { clock, scriptRunner, onFailure }),
    checks: {
      // A read-only database counts as down, because it cannot store a use or a login.
      postgres: async () =>
        (await database.query("select 1 where current_setting('transaction_read_only') = 'off'")).length ===
        1,
      redis: scriptRunner?.ping,
    },
    gauges: {
      postgresPool: database.kind === 'postgres' ? database.poolState : undefined,
      isRedisUp: scriptRunner?.isUp,
    },
    migrate: () => database.migrate(log),
    async warmUp() {
      if (database.kind !== 'postgres') return
      const { open, reason } = await database.warmUp()
      if (reason === undefined) return
      const fields = { reason, open, pool: storage.pool }
      logger.warn(fields, 'postgres pool only partly warmed up; the remaining connections open on demand')
    },
    async close() {
      await scriptRunner?.close()
      await database.close()
    },
  }
}

// The npm package for a store is loaded only if this store is configured.

async function openProductionDatabase(
  { postgres: url, postgres_listen, pool }: Config['storage'],
  { logger, failureLog, connectTimeoutMs }: Dependencies,
) {
  const { openPostgres } = await import('./postgres/postgres.ts')
  const { postgresListener } = await import('./postgres/postgres-listener.ts')
  const now = () => performance.now()
  const log = createStateLog({
    now,
    write: (isUp, reason) =>
      isUp ? logger.info({}, 'postgres is up') : logger.warn({ reason }, 'postgres is down'),
  })
  const state = createPostgresState({ log, now })
  const onError = (error: Error) => failureLog('idle database connection lost', error)
  const database = openPostgres({ url, maxConnections: pool, connectTimeoutMs, onError, state })
  return {
    database: {
      ...database,
      close() {
        log.stop()
        return database.close()
      },
    },
    // If `postgres_listen` is set, the listener and the queries use different addresses. The listener may then fail
    // while the queries work. So the listener reports the state of Postgres only if `postgres_listen` is not set.
    listen: postgresListener(postgres_listen || url, postgres_listen === '' ? state : undefined),
  }
}

async function openEmbeddedStorage(dir: string, openFolder: OpenFolder) {
  const database = await openFolder(dir)
  return { database, listen: database.listen }
}

export async function openDataFolder(dir: string): Promise<EmbeddedDatabase> {
  const { openEmbedded } = await import('./pglite/pglite.ts')
  return openEmbedded({ dir })
}

/** Adds one span per statement, but none for begin, commit and rollback. */
function tracedDatabase<D extends Database>(database: D, spans: StoreSpans): D {
  const traced = (queryable: Queryable): Queryable => ({
    query: (sql, values) => spans.statement(textOf(sql), () => queryable.query(sql, values)),
  })
  return {
    ...database,
    ...traced(database),
    transaction: (work, options) => database.transaction(tx => work(traced(tx)), options),
  }
}

function tracedScriptRunner(scriptRunner: ScriptRunner, spans: StoreSpans): ScriptRunner {
  return {
    ...scriptRunner,
    run: (script, key, args) => spans.script(script.name, () => scriptRunner.run(script, key, args)),
    runForAll: (script, keys, args) =>
      spans.script(script.name, () => scriptRunner.runForAll(script, keys, args)),
  }
}
