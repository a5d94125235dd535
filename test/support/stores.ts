// Finds Postgres and Redis through environment variables or on 127.0.0.1. Otherwise, starts them for the run.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { atEnd } from './cleanup.ts'
import {
  findPostgres,
  findProgram,
  type RedisRole,
  type Server,
  startPostgres,
  startRedis,
  startServer,
  unprivilegedUser,
} from './servers.ts'

export interface Services {
  /** Creates a database and returns its URL. The run drops the database at its end. */
  createDatabase(): Promise<string>
  /** Returns the URL of an empty logical Redis database. At the end of the run, the database is emptied. */
  createRedis(): Promise<string>
  /** The text for the output of the run: whether Postgres and Redis were found or started. */
  readonly origin: string
}

/** @returns `undefined` if Postgres or Redis is missing, because a gateway uses both or neither */
export async function openServices(): Promise<Services | undefined> {
  const postgres = await openPostgres()
  const redis = await openRedis()
  if (postgres === undefined || redis === undefined) return undefined
  return {
    createDatabase: () => createDatabase(postgres.url),
    createRedis: () => claimRedis(redis.url),
    origin: `Postgres ${postgres.origin}, Redis ${redis.origin}`,
  }
}

let stores: Promise<{ postgres: string; redis: string }> | undefined

/**
 * Returns the URLs of a Postgres and a Redis. Every call of a run returns the same URLs.
 * @throws Error if Postgres or Redis is neither running nor installed
 */
export function findStores(): Promise<{ postgres: string; redis: string }> {
  stores ??= openStores()
  return stores
}

async function openStores(): Promise<{ postgres: string; redis: string }> {
  const [postgres, redis] = [await openPostgres(), await openRedis()]
  if (postgres === undefined || redis === undefined)
    throw new Error('Postgres or Redis is missing. Set DATABASE_URL and REDIS_URL, or install both.')
  return { postgres: postgres.url, redis: redis.url }
}

/** Starts a separate Postgres with full durability. It stops at the end of the run. */
export async function startOwnPostgres(
  options: { settings?: readonly string[]; folder?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Server> {
  const bin = findPostgres()
  if (bin === undefined) throw new Error('The programs postgres and initdb are missing. Install PostgreSQL.')
  const server = await startPostgres(bin, { ...options, settings: ['fsync=on', ...(options.settings ?? [])] })
  atEnd(() => server.stop())
  return server
}

/** Starts a separate Redis. It stops at the end of the run. @param flags additional flags */
export async function startOwnRedis(
  as: RedisRole = 'server',
  flags: readonly string[] = [],
): Promise<Server> {
  const program = findProgram('redis-server')
  if (program === undefined) throw new Error('The program redis-server is missing. Install Redis.')
  const server = await startRedis(program, as, flags)
  atEnd(() => server.stop())
  return server
}

interface Store {
  readonly url: string
  /** The text for the output of the run: whether the store was found or started. */
  readonly origin: string
}

async function openPostgres(): Promise<Store | undefined> {
  const { DATABASE_URL: given } = process.env
  if (given) return { url: given, origin: 'from DATABASE_URL' }
  const names = new Set([process.env.PGUSER, process.env.USER, 'root', 'postgres'])
  for (const name of names) {
    const url = `postgres://${name}@127.0.0.1:5432/postgres`
    if (name && (await succeeds(onServer(url, 'select 1')))) return { url, origin: 'found on 127.0.0.1:5432' }
  }
  if (findPostgres() === undefined) return undefined
  return { url: (await startOwnPostgres()).url, origin: 'started for this run' }
}

async function openRedis(): Promise<Store | undefined> {
  const { REDIS_URL: given } = process.env
  if (given) return { url: given, origin: 'from REDIS_URL' }
  const url = 'redis://127.0.0.1:6379'
  if (await succeeds(withRedis(url, redis => redis.ping()))) return { url, origin: 'found on 127.0.0.1:6379' }
  if (findProgram('redis-server') === undefined) return undefined
  return { url: (await startOwnRedis()).url, origin: 'started for this run' }
}

async function createDatabase(server: string): Promise<string> {
  const name = `peage_bench_${randomBytes(6).toString('hex')}`
  const creating = onServer(server, `create database ${name}`)
  atEnd(async () => {
    await creating.catch(() => {})
    await onServer(server, `drop database if exists ${name} with (force)`)
  })
  await creating
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/**
 * Claims an empty logical database. A used database may already have counts for the user IDs of this run, because user
 * IDs always start at 1.
 */
async function claimRedis(server: string): Promise<string> {
  const url = new URL(server)
  const numbers = url.pathname.length > 1 ? [url.pathname.slice(1)] : [...Array(16).keys()].reverse()
  for (const number of numbers) {
    url.pathname = `/${number}`
    const isOurs = await withRedis(url.href, async redis => {
      if ((await redis.dbsize()) > 0) return false
      // The key shows other runs that this database is in use, so they try the next database.
      return (await redis.set('peage-bench', process.pid, 'NX')) === 'OK'
    })
    if (!isOurs) continue
    const { href } = url
    atEnd(() => withRedis(href, redis => redis.flushdb()))
    return href
  }
  throw new Error(`no empty logical database at ${url.host}. Set REDIS_URL to an empty database.`)
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    await redis.connect()
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}

/** Runs one statement on a new connection. */
export async function onServer(url: string, sql: string): Promise<pg.QueryResult> {
  // Postgres waits for every backend before it creates or drops a database. The timeout limits the wait.
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    query_timeout: 30_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.query(sql)
  } catch (error) {
    throw new Error(`${sql}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    const bounded = new Promise(resolve => setTimeout(resolve, 1_000).unref())
    await Promise.race([client.end().catch(() => {}), bounded])
  }
}

function succeeds(done: Promise<unknown>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  )
}

/**
 * Starts a synchronous standby of a Postgres server. After a promotion, the standby replaces the server.
 * @param address the loopback address of the standby, which has the same port as the primary
 */
export async function startStandby(
  primary: Server,
  address: string,
): Promise<{ url: string; promote(): Promise<unknown> }> {
  const bin = findPostgres() ?? ''
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-standby-'))
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const port = String(primary.port)
  // The folder in PATH may contain links to only some programs. The links lead to the folder with all programs.
  const all = dirname(realpathSync(join(bin, 'postgres')))
  const copy = [
    '-h',
    '127.0.0.1',
    '-p',
    port,
    '-U',
    'postgres',
    '-D',
    data,
    '-R',
    '-X',
    'stream',
    '-c',
    'fast',
  ]
  await promisify(execFile)(join(all, 'pg_basebackup'), copy, { cwd: folder, ...user })
  const url = new URL(primary.url)
  url.hostname = address
  const standby = await startServer({
    program: join(bin, 'postgres'),
    flags: ['-D', data, '-p', port, '-c', `listen_addresses=${address}`, '-c', 'unix_socket_directories='],
    folder,
    user,
    port: primary.port,
    url: url.href,
    isReady: href => onServer(href, 'select 1'),
  })
  atEnd(() => standby.stop())
  const streaming = "select 1 from pg_stat_replication where state = 'streaming'"
  for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 100) {
    if ((await onServer(primary.url, streaming)).rowCount !== 0) break
    await sleep(100)
  }
  // From now on, the primary acknowledges a transaction only when the standby has received it.
  await onServer(primary.url, "alter system set synchronous_standby_names = '*'")
  await onServer(primary.url, 'select pg_reload_conf()')
  return { url: url.href, promote: () => onServer(url.href, 'select pg_promote()') }
}

/**
 * Uses all connections of a Postgres server: ends the connections of other clients, and opens new ones instead.
 * @returns a function that stops this, and closes the opened connections
 */
export async function fillUp(url: string): Promise<() => Promise<void>> {
  const clients: pg.Client[] = []
  const open = async () => {
    const client = new pg.Client({ connectionString: url, application_name: 'filler' })
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    return client
  }
  const first = await open()
  let isOver = false
  const filling = (async () => {
    while (!isOver) {
      await first.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where backend_type = 'client backend' and application_name <> 'filler'`,
      )
      await open().catch(() => {})
    }
  })()
  return async () => {
    isOver = true
    await filling
    await Promise.all(clients.map(client => client.end()))
  }
}
