// Everything at once for an hour: what a gateway keeps (heap, handles, sockets, connections to the database) stays what it was.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createAccounts, noRateLimits, password } from './accounts.mjs'
import { createUsers, emit, newSecret } from './alerts.mjs'
import { residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'
import { heapsOf, prepare, routing } from './reload.mjs'
import { startReloadLoad } from './reload-load.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { slopeOf } from './slope.mjs'
import { startUpstream } from './stage.mjs'
import { post } from './subjects.mjs'

const duration = setting('SOAK_SECONDS', 3_600, 90) * 1_000
/** Until code is compiled, pools are full and caches have their working size. */
const warmUp = Math.min(120_000, duration / 3)
const looks = 12
/** How much more there may be at the end than at the beginning, by the line through what was seen. */
const most = { heap: 6, handles: 12, sockets: 12, database: 3 }
const hook = fileURLToPath(new URL('heap-on-signal.mjs', import.meta.url))

/** @type {import('./main.mjs').Drill} */
export async function soak({ say, expect }) {
  const upstream = await startUpstream()
  const stage = await openStage()
  let everything
  try {
    const heapFile = join(stage.folder, 'heap')
    const gateway = await stage.start({
      // Tokens that are good until the drill ends.
      routing: `auth: { access_token_ttl: 24h, ${noRateLimits} }
webhooks: { allow_private_networks: true }
mail: { smtp: 'smtp://127.0.0.1:1', from: 'drill@example.com', verify_on_register: true, rate_limits: { per_address: 0 } }
events: { url: 'http://127.0.0.1:${upstream.port}/events?status=204', secret: '${newSecret()}' }
${routing(upstream.port, 0)}`,
      env: { NODE_OPTIONS: `--import ${hook}`, HEAP_FILE: heapFile },
    })
    const [pid = 0] = gateway.pids
    everything = await startEverything(gateway, stage)
    await sleep(warmUp)
    const seen = []
    const begun = performance.now()
    for (let look = 0; look <= looks; look += 1) {
      await sleep(Math.max(0, begun + (look * duration) / looks - performance.now()))
      const [{ heapUsed, counts }] = await heapsOf([pid], heapFile)
      seen.push({
        at: (performance.now() - begun) / duration,
        heap: heapUsed / MiB,
        handles: Object.values(counts).reduce((sum, count) => sum + count, 0),
        sockets: readdirSync(`/proc/${pid}/fd`).length,
        database: await connectionsOf(stage.database),
      })
    }
    const done = await everything.stop()
    say(`${JSON.stringify(done)}; resident ${residentOf(pid).toFixed(0)} MiB`)
    const names = {
      heap: 'heap after collection, MiB',
      handles: 'handles and timers',
      sockets: 'file descriptors',
      database: 'connections to the database',
    }
    for (const [key, name] of Object.entries(names)) {
      const values = seen.map(one => one[key])
      const slope = slopeOf(seen.map(one => [one.at, one[key]]))
      expect(
        `${name}: the slope is flat, less than ${most[key]} more in ${duration / 1_000} s`,
        slope < most[key],
        `${slope.toFixed(2)}; from ${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`,
      )
    }
    expect('no request fails', done.failed.length === 0, done.failed.slice(0, 5).join('; ') || 'none')
  } finally {
    await everything?.stop()
    await stage.stop()
    await upstream.stop()
  }
}

/** Requests of all kinds, streams, WebSockets, registrations, sessions, mails, events, alerts that nobody takes, and reloads. */
async function startEverything(gateway, { database, file }) {
  const { port, admin } = gateway
  const load = startReloadLoad(port, await prepare(port, database))
  const emails = await createAccounts(database, 4)
  const receivers = Array.from({ length: 10 }, (_, i) => `127.0.1.${i + 1}:1`)
  const webhooks = receivers.map(receiver => ({ url: `https://${receiver}/`, receiver, secret: newSecret() }))
  const users = await createUsers(database, webhooks)
  const done = { registrations: 0, sessions: 0, alerts: 0, reloads: 0 }
  const failed = []
  const due = (what, status, wanted) => status === wanted || failed.push(`${what} ${status}`)
  let isOver = false
  const kinds = {
    registrations: [1_000, register],
    sessions: [200, session],
    alerts: [100, alert],
    reloads: [10_000, reload],
  }
  async function register() {
    const email = `soaked-${done.registrations}@example.com`
    due('registration', (await post(port, 'register', { email, password })).status, 201)
  }
  async function session() {
    const email = emails[done.sessions % emails.length]
    const login = await post(port, 'login', { email, password })
    const refreshed = await post(port, 'refresh', { refresh_token: login.body.refresh_token })
    const { status } = await post(port, 'logout', { refresh_token: refreshed.body.refresh_token })
    due('login', login.status, 200)
    due('refresh', refreshed.status, 200)
    due('logout', status, 200)
  }
  async function alert() {
    const data = { number: done.alerts }
    const { status } = await emit(admin, { type: 'drill.alert', data, user_id: users[data.number % 10] })
    due('alert', status, 202)
  }
  async function reload() {
    writeFileSync(file, `${text}\n# ${done.reloads}\n`)
    process.kill(gateway.pids[0], 'SIGHUP')
  }
  const text = readFileSync(file, 'utf8')
  const running = Object.entries(kinds).map(async ([kind, [everyMs, work]]) => {
    while (!isOver) {
      await work()
      done[kind] += 1
      await sleep(everyMs)
    }
  })
  let stopped
  const stop = async () => {
    isOver = true
    await Promise.all(running)
    await load.stop()
    const { requests, streams, webSockets } = load.seen
    return { ...done, requests, streams, webSockets, failed: [...failed, ...load.failed, ...load.broken] }
  }
  return {
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

async function connectionsOf(database) {
  const { rows } = await database.query(
    'select count(*)::integer as n from pg_stat_activity where datname = current_database()',
  )
  return rows[0].n
}
