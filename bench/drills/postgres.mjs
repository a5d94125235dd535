// Postgres stops at once and comes back, stands still, has no connection, no lock or no byte left, or fails over, under requests of every kind.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startNameServer } from './name-server.mjs'
import { startOwnPostgres, startStandby } from './own-postgres.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { mountSmallDisk } from './small-disk.mjs'
import { startUpstream } from './stage.mjs'
import { newPro, post, send } from './subjects.mjs'

const outageMs = setting('POSTGRES_SECONDS', 8, 4) * 1_000
/** Milliseconds until an answer that the database is needed for, and until all is well again. */
const soon = 2_000
const recovery = 5_000

/** Postgres keeps 16 MiB of its log at a time, and its own tables are some 25 MiB. */
const diskMiB = 220
/** Of the loopback network. */
const standbyAddress = '127.0.14.2'

/** @type {import('./main.mjs').Drill} */
export async function postgres(watch) {
  const disk = mountSmallDisk(diskMiB)
  const server = await startOwnPostgres(
    ['max_connections=60', 'min_wal_size=32MB', 'max_wal_size=48MB'],
    disk,
  )
  await underFaults(watch, { server, faults: faultsOf(server, disk) })
  await failOver(watch)
  watch.say(`each fault lasted ${outageMs / 1_000} s`)
}

/** Each ends when Postgres is back. */
function faultsOf(server, disk) {
  return {
    'stopped at once': async () => {
      await server.stopAtOnce()
      await sleep(outageMs)
      await server.startAgain()
    },
    'stands still': async () => {
      server.pause()
      await sleep(outageMs)
      server.resume()
    },
    'has no connection left': async () => {
      const giveBack = await server.fillUp()
      await sleep(outageMs)
      await giveBack()
    },
    'all connections of the pools wait for a lock': async database => {
      const client = new pg.Client({ connectionString: database })
      await client.connect()
      await client.query('begin')
      await client.query('lock table users in access exclusive mode')
      await sleep(outageMs)
      await client.end()
    },
    'its disk is full': async database => {
      disk.fill()
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
    'its disk is full, and it cannot write its log': async database => {
      disk.fill()
      // It has no more than it needs of segments that it may use again.
      const client = new pg.Client({ connectionString: database })
      client.on('error', () => {})
      await client.connect()
      for (let time = 0; time < 20; time += 1) {
        const isOver = await client.query('select pg_switch_wal(), txid_current()').then(
          () => false,
          () => true,
        )
        if (isOver) break
      }
      await client.end().catch(() => {})
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
  }
}

/** One that could not even recover on a full disk has ended, and is started by hand. */
async function backOn(server, database) {
  if (!server.isAlive()) await server.startAgain()
  for (let waited = 0; waited < 30_000; waited += 100) {
    const client = new pg.Client({ connectionString: database, connectionTimeoutMillis: 1_000 })
    client.on('error', () => {})
    const isBack = await client.connect().then(
      () => true,
      () => false,
    )
    await client.end().catch(() => {})
    if (isBack) return
    await sleep(100)
  }
}

/** Its name leads to the standby, which has been promoted. */
async function failOver(watch) {
  const server = await startOwnPostgres(['max_connections=60'])
  const standby = await startStandby(server, standbyAddress)
  const names = startNameServer()
  names.set('db.test', ['127.0.0.1'])
  const faults = {
    'fails over to another address behind the same name': async () => {
      await server.stopAtOnce()
      await sleep(outageMs / 2)
      await standby.promote()
      names.set('db.test', [standbyAddress])
    },
  }
  try {
    await underFaults(watch, { server, faults, name: 'db.test', standby, before: names.command })
  } finally {
    names.stop()
  }
}

async function underFaults({ say, expect }, { server, faults, name, standby, before }) {
  // On a machine that is busy with something else a stall may be ours: it must not pass for the gateway's.
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  const upstream = await startUpstream()
  const stage = await openStage({ postgres: server.url, standby: standby?.url })
  try {
    const through = new URL(stage.url)
    if (name !== undefined) through.hostname = name
    const setting = {
      through: through.href,
      before,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service, plans: [pro] }
  - { path: /public/noise, upstream: service, free_daily: true }`,
      settings: 'limits: { free_daily: 1000000 }\nauth: { rate_limits: { refresh: 0 } }',
    }
    const replicas = [await stage.start(setting), await stage.start(setting)]
    const work = await startWork(replicas, stage.database)
    for (const [fault, play] of Object.entries(faults)) {
      await sleep(2_000)
      const before = work.take()
      expect(
        `${fault}: all is well before`,
        before.length > 0 && before.every(({ status }) => status === 200),
        told(before),
      )
      await play(stage.url)
      judge(expect, fault, await untilWell(work))
    }
    await work.stop()
    const statuses = await Promise.all(replicas.map(replica => ready(replica)))
    expect(
      'no process has ended',
      statuses.every(status => status === 200),
      statuses.join(' '),
    )
    say(`the drill itself stood still for ${(own.max / 1e6).toFixed(0)} ms at most`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

async function untilWell(work) {
  const back = performance.now()
  const during = work.take()
  await sleep(recovery)
  const recovering = work.take()
  await sleep(2_000)
  return { back, all: [...during, ...recovering], after: work.take() }
}

function judge(expect, fault, { back, all, after }) {
  const wrong = all.filter(({ status }) => status !== 200 && status !== 503)
  expect(`${fault}: nothing but 200 and 503`, wrong.length === 0, `${told(all)}`)
  const slowest = Math.max(0, ...all.map(({ tookMs }) => tookMs))
  expect(`${fault}: answered within 2 s`, slowest < soon + 200, `${(slowest / 1_000).toFixed(2)} s at most`)
  const last = Math.max(back, ...all.filter(({ status }) => status !== 200).map(({ at }) => at))
  expect(
    `${fault}: all is well within 5 s of its return`,
    after.length > 0 && after.every(({ status }) => status === 200),
    `the last failure ${((last - back) / 1_000).toFixed(1)} s after it; then ${told(after)}`,
  )
}

const ready = async ({ admin }) => (await fetch(`http://127.0.0.1:${admin}/readyz`)).status

/** Counted by kind and status. */
function told(answers) {
  const counts = new Map()
  for (const { kind, status } of answers)
    counts.set(`${kind} ${status}`, (counts.get(`${kind} ${status}`) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ')
}

/** Requests of paying and of free users, logins and refreshes, at both replicas in turn. */
async function startWork(replicas, database) {
  const [{ port }] = replicas
  const paying = await newPro(port, database, 'paying')
  const free = await newPro(port, database, 'free')
  await database.query("update users set plan = 'free' where id = $1", [free.id])
  const account = { email: 'paying@drill.test', password: 'correct horse battery' }
  let refreshToken = (await post(port, 'login', account)).body.refresh_token
  let answers = []
  let isStopping = false
  let turn = 0
  const somewhere = () => {
    turn += 1
    return replicas[turn % replicas.length].port
  }
  const kinds = {
    paying: [20, () => send(somewhere(), 'GET', '/public/small', paying.headers)],
    free: [50, () => send(somewhere(), 'GET', '/public/noise?bytes=10', free.headers)],
    login: [200, () => post(somewhere(), 'login', account)],
    refresh: [
      200,
      async () => {
        const answer =
          refreshToken === undefined
            ? await post(somewhere(), 'login', account)
            : await post(somewhere(), 'refresh', { refresh_token: refreshToken })
        // After a 503 the token may be exchanged without an answer that says so: a client signs in again.
        refreshToken = answer.body.refresh_token
        return answer
      },
    ],
  }
  const running = Object.entries(kinds).map(async ([kind, [pauseMs, ask]]) => {
    while (!isStopping) {
      const at = performance.now()
      const { status } = await ask()
      answers.push({ kind, status, at, tookMs: performance.now() - at })
      await sleep(pauseMs)
    }
  })
  return {
    /** The answers since it was asked last. */
    take() {
      const taken = answers
      answers = []
      return taken
    },
    async stop() {
      isStopping = true
      await Promise.all(running)
    },
  }
}
