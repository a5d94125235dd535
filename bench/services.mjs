// Postgres and Redis: those that the environment names, else those found on 127.0.0.1, else started here; or none.
import { randomBytes } from 'node:crypto'
import { chownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import { atEnd } from './cleanup.mjs'
import { freePort } from './ports.mjs'
import { run, startServer, temporaryFolder } from './processes.mjs'
import { findPostgres, findProgram } from './programs.mjs'

/**
 * @typedef {object} Services
 * @property {() => Promise<string>} createDatabase its URL; dropped at the end
 * @property {() => Promise<string>} createRedis the URL of a logical database that was empty; emptied at the end
 * @property {string} origin for people to read
 */

/** @returns {Promise<Services | undefined>} both or none: a gateway has either */
export async function openServices() {
  const postgres = await openPostgres()
  const redis = await openRedis()
  if (postgres === undefined || redis === undefined) return undefined
  return {
    createDatabase: () => createDatabase(postgres.url),
    createRedis: () => claimRedis(redis.url),
    origin: `Postgres ${postgres.origin}, Redis ${redis.origin}`,
  }
}

/** One for all of a run. @type {Promise<{ postgres: string, redis: string }> | undefined} */
let stores

/** Addresses of a Postgres and a Redis, found or started as above. @throws Error where one is neither there nor installed */
export function findStores() {
  stores ??= openStores()
  return stores
}

async function openStores() {
  const [postgres, redis] = [await openPostgres(), await openRedis()]
  if (postgres === undefined || redis === undefined)
    throw new Error('a Postgres and a Redis are needed: DATABASE_URL and REDIS_URL, or their programs here')
  return { postgres: postgres.url, redis: redis.url }
}

async function openPostgres() {
  const { DATABASE_URL: given } = process.env
  if (given) return { url: given, origin: 'of DATABASE_URL' }
  const names = new Set([process.env.PGUSER, process.env.USER, 'root', 'postgres'])
  for (const name of names) {
    const url = `postgres://${name}@127.0.0.1:5432/postgres`
    if (name && (await onServer(url, 'select 1').then(yes, no)))
      return { url, origin: 'found on 127.0.0.1:5432' }
  }
  const bin = findPostgres()
  return bin === undefined
    ? undefined
    : { url: (await startPostgres(bin)).url, origin: 'started for this run' }
}

async function openRedis() {
  const { REDIS_URL: given } = process.env
  if (given) return { url: given, origin: 'of REDIS_URL' }
  const url = 'redis://127.0.0.1:6379'
  if (await withRedis(url, redis => redis.ping()).then(yes, no))
    return { url, origin: 'found on 127.0.0.1:6379' }
  const program = findProgram('redis-server')
  return program === undefined
    ? undefined
    : { url: (await startRedis(program)).url, origin: 'started for this run' }
}

/**
 * @param {string} bin
 * @param {readonly string[]} extra settings, `name=value`
 * @param {{ path: string }} [folder] empty
 */
export async function startPostgres(bin, extra = [], folder = temporaryFolder()) {
  const as = unprivilegedUser()
  if (as !== undefined) chownSync(folder.path, as.uid, as.gid)
  const data = join(folder.path, 'data')
  const words = [
    '--auth=trust',
    '--username=postgres',
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
    '-D',
    data,
  ]
  await run(join(bin, 'initdb'), words, { cwd: folder.path, ...as })
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', ...extra]
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  /** Also again, on the same folder, after it was killed. @returns {Promise<number>} its process */
  const start = async () => {
    const { pids } = await startServer(
      join(bin, 'postgres'),
      ['-D', data, '-p', String(port), ...settings.flatMap(setting => ['-c', setting])],
      { port, cwd: folder.path, ...(as === undefined ? {} : { as }) },
    )
    // Its port is open a moment before it takes anybody in.
    for (let tries = 0; tries < 100 && !(await onServer(url, 'select 1').then(yes, no)); tries += 1) {
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    return pids[0] ?? 0
  }
  return { url, pid: await start(), start }
}

/** @param {string} program */
export async function startRedis(program) {
  const folder = temporaryFolder()
  const port = await freePort()
  const words = `--port ${port} --bind 127.0.0.1 --dir ${folder.path} --appendonly no`.split(' ')
  const { pids } = await startServer(program, [...words, '--save', ''], { port })
  return { url: `redis://127.0.0.1:${port}`, pid: pids[0] ?? 0 }
}

/** @param {string} server */
async function createDatabase(server) {
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
 * Users' ids begin at 1 in every database: counts that somebody else keeps in this Redis must not be ours.
 * @param {string} server
 */
async function claimRedis(server) {
  const url = new URL(server)
  const numbers = url.pathname.length > 1 ? [url.pathname.slice(1)] : [...Array(16).keys()].reverse()
  for (const number of numbers) {
    url.pathname = `/${number}`
    const isOurs = await withRedis(url.href, async redis => {
      if ((await redis.dbsize()) > 0) return false
      // Another run of this benchmark sees it and takes the next one.
      return (await redis.set('peage-bench', process.pid, 'NX')) === 'OK'
    })
    if (!isOurs) continue
    const { href } = url
    atEnd(() => withRedis(href, redis => redis.flushdb()))
    return href
  }
  throw new Error(`no empty logical database at ${url.host}: name an empty one in REDIS_URL`)
}

/**
 * @template T
 * @param {string} url
 * @param {(redis: Redis) => Promise<T>} use
 * @returns {Promise<T>}
 */
async function withRedis(url, use) {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    await redis.connect()
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}

/**
 * @param {string} url
 * @param {string} sql
 */
async function onServer(url, sql) {
  // To make or drop a database, a server waits until every backend has taken note: one that is stuck holds it up.
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    query_timeout: 30_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(sql)
  } catch (error) {
    throw new Error(`${sql}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    const bounded = new Promise(resolve => setTimeout(resolve, 1_000).unref())
    await Promise.race([client.end().catch(() => {}), bounded])
  }
}

/** Postgres refuses to run as root. */
export function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  const fields = users.map(line => line.split(':'))
  const user = fields.find(([name]) => name === 'postgres') ?? fields.find(([name]) => name === 'nobody')
  if (user === undefined) throw new Error('no user postgres or nobody to run Postgres as')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

const yes = () => true
const no = () => false
