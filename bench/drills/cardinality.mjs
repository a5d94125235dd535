// Clients who make everything up, paths, methods, hosts, tokens and keys: none of it makes a time series.
import { randomUUID } from 'node:crypto'
import { sha256Hex } from '../../build/identity/token-hash.js'
import { openStage } from './replicas.mjs'
import { startUpstream } from './stage.mjs'
import { createStrangers } from './strangers.mjs'
import { createUsers } from './users.mjs'

const requests = 100_000
/** Of each: users with a use left, with none, deactivated, with a key. */
const each = 1_000
/** A day's uses: nobody among those who have some left comes to their end. */
const daily = 1_000_000

/** @type {import('./main.mjs').Drill} */
export async function cardinality({ say, expect }) {
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    await stage.migrate()
    const { keys: signing, tokens } = await createUsers(stage, 4 * each, 'free')
    const keys = await makeUsersWithTokens(stage.database)
    const gateway = await stage.start({
      settings: settings(signing),
      routing: routing(upstream.port),
    })
    const strangers = createStrangers(gateway.port, {
      tokens: tokens.slice(0, each),
      spent: tokens.slice(each, 2 * each),
      inactive: tokens.slice(2 * each, 3 * each),
      keys,
    })
    const kinds = total(await strangers.everyKind())
    const before = await seriesOf(gateway.admin)
    say(`${kinds} requests, one of each kind: ${before.size} time series`)
    const answers = await strangers.random(requests)
    strangers.stop()
    const after = await seriesOf(gateway.admin)
    say(`${total(answers)} at random, answered ${byClass(answers)}`)
    const grown = [...after.keys()].filter(id => !before.has(id))
    expect(
      `${requests} requests leave the number of time series unchanged`,
      after.size === before.size && grown.length === 0,
      `${before.size} before, ${after.size} after${grown.length > 0 ? `: ${grown.slice(0, 5).join(' ')}` : ''}`,
    )
    const counted = sumOf(after) - sumOf(before)
    expect('they are counted', counted > 0.9 * requests, `${counted}, the others being no HTTP`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** @param {import('pg').Pool} database @returns {Promise<string[]>} keys, of the last users */
async function makeUsersWithTokens(database) {
  const keys = Array.from({ length: each }, () => `peage_${randomUUID()}`)
  await database.query(
    `update users set daily_usage = $1, last_usage_date = (now() at time zone 'utc')::date where id between $2 and $3`,
    [daily, each + 1, 2 * each],
  )
  await database.query("update users set plan = 'pro' where id > $1", [3 * each])
  await database.query('update users set is_active = 0 where id between $1 and $2', [2 * each + 1, 3 * each])
  await database.query(
    'insert into api_tokens (user_id, token_hash) select $1 + at, hash from unnest($2::text[]) with ordinality as one (hash, at)',
    [3 * each, keys.map(key => sha256Hex(key))],
  )
  return keys
}

/** Limits would answer by how busy the machine is. */
const settings = signing => `limits: { free_daily: ${daily} }
auth:
  keys: [${JSON.stringify(signing)}]
  rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0 }`

const routing =
  port => `upstreams: { service: { targets: ['http://127.0.0.1:${port}'], connections_per_client: 128 } }
routes:
  - { path: /public/*, upstream: service, auth: none }
  - { path: /guarded/*, upstream: service, auth: optional }
  - { path: /paid/:id/reviews, upstream: service, plans: [premium, pro] }
  - { path: /daily/*, upstream: service, free_daily: true }
  - { path: /read/:id, upstream: service, methods: [GET] }
  - { path: /hosted/*, upstream: service, hosts: [drill.example] }`

function byClass(answers) {
  const classes = {}
  for (const [status, count] of answers) {
    const name = typeof status === 'number' ? `${Math.floor(status / 100)}xx` : status
    classes[name] = (classes[name] ?? 0) + count
  }
  return Object.entries(classes)
    .toSorted()
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

/** @param {number} admin @returns {Promise<Map<string, number>>} what each says, by its name and labels */
async function seriesOf(admin) {
  const page = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
  const samples = page.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    samples.map(line => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at))]
    }),
  )
}

function sumOf(series) {
  return [...series].reduce(
    (sum, [id, value]) => sum + (id.startsWith('http_requests_total{') ? value : 0),
    0,
  )
}

function total(answers) {
  return [...answers.values()].reduce((sum, count) => sum + count, 0)
}
