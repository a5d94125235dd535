// What accounts, sessions, keys and counted uses take in Postgres and Redis, through the gateway's own stores.
import { createSessionStore } from '../../build/accounts/session-store.js'
import { createApiTokenStore } from '../../build/identity/api-tokens/api-token-store.js'
import { sha256Hex } from '../../build/identity/token-hash.js'
import { openRedis } from '../../build/storage/redis/redis.js'
import { defineScript } from '../../build/storage/redis/redis-scripts.js'
import { createUsageHint } from '../../build/usage/usage-hint.js'
import { createUsageStore } from '../../build/usage/usage-store.js'
import { createUserStore } from '../../build/users/user-store.js'
import { forEach, round, startOwnPostgres, startOwnRedis } from './own-stores.mjs'

const users = 10_000
const ids = Array.from({ length: users }, (_, at) => at + 1)
/** So many users apart no two share a page. */
const farApart = 100
const connections = 10

/** @type {import('./main.mjs').Part} */
export async function stores({ say, table }) {
  const postgres = await startOwnPostgres()
  const { rows, sizes } = await statementCosts(postgres)
  table(
    [
      'Postgres: one',
      'WAL bytes',
      'CPU µs of Postgres',
      'of the gateway',
      'a second here, over 10 connections',
    ],
    rows,
  )
  say('')
  table(['Postgres: one row with its indexes', 'bytes'], rowSizes(sizes))
  say('')
  table(['a counted use, its page changed', 'WAL bytes'], await pageCosts(postgres))
  await postgres.database.close()
  say('')
  table(['Redis', 'is'], await redisCosts())
}

async function statementCosts({ database, cpu }) {
  const accounts = createUserStore(database)
  const sessions = createSessionStore(database)
  const keys = createApiTokenStore(database)
  const usage = createUsageStore(database)
  const now = new Date()
  const month = new Date(Date.now() + 30 * 86_400_000)
  const sessionId = id => `0f0e0d0c-0b0a-4908-8706-${String(id).padStart(12, '0')}`
  const session = (id, nth) => ({
    tokenHash: sha256Hex(`session ${id} ${nth}`),
    expiresAt: month,
    sessionId: sessionId(id),
  })
  // As long as a browser's usually is.
  const origin = { createdAt: now, userAgent: 'x'.repeat(110) }
  const hash = `$argon2id$v=19$m=19456,t=2,p=1$${'s'.repeat(22)}$${'h'.repeat(43)}`
  const work = {
    registration: id => accounts.create(`firstname.lastname${id}@example.com`, hash),
    login: id => sessions.create(id, 0, session(id, 0), origin),
    refresh: id => sessions.rotate({ userId: id, tokenHash: session(id, 0).tokenHash }, session(id, 1), now),
    'API token': id => keys.replace(id, sha256Hex(`key ${id}`), now),
    'last use of a key': id => keys.recordUse(id, new Date()),
    'look-up of a user': id => accounts.findById(id),
    'counted use': id => usage.count([id], '2026-01-01', 1),
    'change of a plan': id => accounts.update(id, { plan: 'premium' }),
    heartbeat: id => database.query('select pg_notify($1, $2)', ['peage_heartbeat', String(id)]),
  }
  const rows = []
  const sizes = {}
  for (const [name, one] of Object.entries(work)) {
    rows.push([name, ...(await cost(ids, one))])
    sizes[name] = await sizesIn(database)
  }
  // Rows that have expired go by the thousand.
  const batches = Array.from({ length: (2 * users) / 1_000 }, (_, at) => at)
  const after = new Date(month.getTime() + 1)
  const [bytes, time, own, rate] = await cost(batches, () => sessions.prune(after, 1_000))
  const [one, its, ours] = [bytes, time, own].map(each => round(each / 1_000))
  rows.push(['refresh token pruned', one, its, ours, rate * 1_000])
  return { rows, sizes }

  async function cost(all, one) {
    const from = await position(database)
    const [cpuBefore, ownBefore, begun] = [cpu(), process.cpuUsage(), performance.now()]
    await forEach(all, connections, one)
    const seconds = (performance.now() - begun) / 1000
    const used = (cpu() - cpuBefore) * 1e6
    const own = process.cpuUsage(ownBefore)
    const written = (await position(database)) - from
    const each = [written, used, own.user + own.system].map(total => round(total / all.length))
    return [...each, round(all.length / seconds)]
  }
}

/** Bytes of a table and its indexes. @returns {Promise<Record<string, number>>} */
async function sizesIn(database) {
  const rows = await database.query(
    `select relname as name, pg_total_relation_size(oid)::bigint as bytes from pg_class
      where relname in ('users', 'subscriptions', 'refresh_tokens', 'api_tokens')`,
  )
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, Number(bytes)]))
}

/** Each as it is right after so many were made, before anything else was done to them. */
function rowSizes({ registration, login, refresh, 'API token': made }) {
  return [
    ['user and subscription', registration.users + registration.subscriptions],
    ['refresh token of a login', login.refresh_tokens],
    ['what a refresh adds', refresh.refresh_tokens - login.refresh_tokens],
    ['API token', made.api_tokens],
  ].map(([name, bytes]) => [name, round(bytes / users)])
}

/** The first change of a page after a checkpoint writes all of the page. */
async function pageCosts({ database }) {
  const usage = createUsageStore(database)
  const apart = ids.filter(id => id % farApart === 0)
  const cost = async day => {
    const from = await position(database)
    for (const id of apart) await usage.count([id], day, 1)
    return round(((await position(database)) - from) / apart.length)
  }
  await database.query('checkpoint')
  const first = await cost('2026-01-02')
  const again = await cost('2026-01-03')
  await database.query('alter system set wal_compression = on')
  await database.query('select pg_reload_conf()')
  await database.query('checkpoint')
  const compressed = await cost('2026-01-04')
  return [
    ['since the last checkpoint', again],
    ['not since the last checkpoint', first],
    ['not since the last checkpoint, wal_compression = on', compressed],
  ]
}

async function position(database) {
  const [{ at }] = await database.query(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as at",
  )
  return Number(at)
}

async function redisCosts() {
  const many = 100_000
  const redis = await startOwnRedis()
  const keyValue = openRedis(redis.url)
  await keyValue.whenUp(2_000)
  const counts = createUsageHint(keyValue)
  const inUse = () => keyValue.run(memory, 'peage:memory', [])
  const before = await inUse()
  const cpuBefore = redis.cpu()
  const crowd = Array.from({ length: many }, (_, at) => at + 5_000_000)
  await forEach(crowd, 50, id => counts.reserve([id], '2030-01-01', 1))
  const used = redis.cpu() - cpuBefore
  const bytes = (await inUse()) - before
  await keyValue.close()
  return [
    [`bytes for a counted user and day, of ${many.toLocaleString('en')}`, round(bytes / many)],
    ['CPU µs for a counted use', round((used / many) * 1e6)],
  ]
}

const lua = "return tonumber(string.match(redis.call('info', 'memory'), 'used_memory:(%d+)'))"
const memory = defineScript('used_memory', lua)
