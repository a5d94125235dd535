// What each kind of request asks of Postgres and of Redis: read on the wire, behind a real gateway.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { admitted, startGateway as startContender } from '../contenders/gateway.mjs'
import { startCountingRelay } from '../drills/counting-relay.mjs'
import { startProgram, temporaryFolder } from '../processes.mjs'
import { startLoad } from '../rounds.mjs'
import { startOwnPostgres, startOwnRedis } from './own-stores.mjs'

const account = { email: 'someone@example.com', password: 'correct horse battery' }
const idle = 10
/** Of 24 users. */
const connections = 48

/** @type {import('./main.mjs').Part} */
export async function statements({ say, table }) {
  const postgres = await startOwnPostgres()
  const redisServer = await startOwnRedis()
  const relay = await startCountingRelay(postgres.url)
  const redis = new Redis(redisServer.url)
  try {
    const port = await startGateway(relay.url, redisServer.url)
    const asked = async () => ({
      postgres: sumOf((await relay.counts()).statements, text => !unasked.test(text)),
      redis: await scriptsOf(redis),
    })
    const rows = []
    for (const [name, request] of requestsTo(port, postgres.database)) {
      const before = await asked()
      await request()
      // `last_used_at` is written behind the answer.
      await sleep(1_200)
      const after = await asked()
      rows.push([name, after.postgres - before.postgres, after.redis - before.redis])
    }
    table(['request', 'statements in Postgres', 'scripts in Redis'], rows)
    await usesAtOnce({ say, relay, redis, redisUrl: redisServer.url })
    const all = async () => sumOf((await relay.counts()).statements, () => true)
    const before = await all()
    await sleep(idle * 1_000)
    const quiet = ((await all()) - before) / idle
    say(
      `\nA process that nobody asks sends Postgres ${quiet.toFixed(1)} statements a second: heartbeats, and looks for deliveries.`,
    )
  } finally {
    redis.disconnect()
    await postgres.database.close()
    relay.stop()
  }
}

/** What one of many uses at once asks of the stores, by a gateway of its own on the same database. */
async function usesAtOnce({ say, relay, redis, redisUrl }) {
  const upstream = await startProgram('contenders/serve-upstream.mjs')
  const services = { createDatabase: async () => relay.url, createRedis: async () => redisUrl, origin: '' }
  const gateway = await startContender({ upstream, services }, { freeDaily: 1_000_000_000, crowded: 23 })
  const { running, question, others = [], status } = admitted(gateway)
  const load = startLoad()
  const run = (warmUp, time) =>
    load.run({ ...running, questions: [question, ...others], status, connections, warmUp, time })
  const asked = async () => ({
    postgres: sumOf((await relay.counts()).statements, text => /daily_usage/i.test(text)),
    redis: await scriptsOf(redis),
  })
  await run(0, 5_000)
  const before = await asked()
  const { requests } = await run(0, 10_000)
  const after = await asked()
  await load.stop()
  await running.stop()
  const each = name => ((after[name] - before[name]) / requests).toFixed(3)
  say(
    `\nFree uses, ${connections} at once: ${each('postgres')} statements and ${each('redis')} scripts for one (bar 0.25), ${requests} uses in 10 s.`,
  )
}

/** What a gateway says to Postgres of its own accord: heartbeats, looks for deliveries, and what it prunes. */
const unasked = /pg_notify|webhook_deliveries|delete from|set secret_before = null/

function* requestsTo(port, database) {
  let pair
  let key
  const send = async (method, path, status, headers, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status}, not ${status}`)
    const text = await answer.text()
    return text.startsWith('{') ? JSON.parse(text) : {}
  }
  const post = (endpoint, status, body) => send('POST', `/api/v1/auth/${endpoint}`, status, {}, body)
  const bearer = () => ({ authorization: `Bearer ${pair.access_token}` })
  const withToken = (path, status) => send('GET', path, status, bearer())
  yield ['registration', () => post('register', 201, account)]
  const logIn = async () => {
    pair = await post('login', 200, account)
  }
  yield ['login', logIn]
  yield ['access token, the first time', () => withToken('/guarded/1', 200)]
  yield ['access token, known', () => withToken('/guarded/1', 200)]
  yield ['free use, admitted', () => withToken('/daily/1', 200)]
  yield ['free use, refused the first time', () => withToken('/daily/1', 429)]
  yield ['free use, refused again', () => withToken('/daily/1', 429)]
  yield [
    'refresh',
    async () => {
      pair = await post('refresh', 200, { refresh_token: pair.refresh_token })
    },
  ]
  yield [
    'change of a plan, by another program',
    () => database.query("update users set plan = 'pro' where email = $1", [account.email]),
  ]
  yield [
    'API token made',
    async () => {
      key = (await send('POST', '/api/v1/user/api-token', 201, bearer())).api_token
    },
  ]
  yield ['API token, the first time', () => send('GET', '/guarded/1', 200, { 'x-api-key': key })]
  yield ['API token, known', () => send('GET', '/guarded/1', 200, { 'x-api-key': key })]
  yield ['logout', () => post('logout', 200, { refresh_token: pair.refresh_token })]
}

async function startGateway(postgres, redis) {
  const folder = temporaryFolder()
  const upstream = await startProgram('contenders/serve-upstream.mjs')
  const file = join(folder.path, 'gateway.yaml')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0' }
storage: { postgres: ${JSON.stringify(postgres)}, redis: ${JSON.stringify(redis)} }
upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /guarded/*, upstream: service }
  - { path: /daily/*, upstream: service, free_daily: true }
`,
  )
  const { port } = await startProgram('../dist/cli.js', ['start', '-c', file])
  // Its first heartbeat: until then nothing is remembered.
  await sleep(1_000)
  return port
}

function sumOf(counts, isMeant) {
  return Object.entries(counts).reduce((sum, [text, count]) => sum + (isMeant(text) ? count : 0), 0)
}

async function scriptsOf(redis) {
  const stats = await redis.info('commandstats')
  const lines = stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+),.*failed_calls=(\d+)/gm)
  return [...lines].reduce((sum, [, calls, failed]) => sum + Number(calls) - Number(failed), 0)
}
