// Postgres stops at once and comes back, stands still, or has no connection left, under requests of every kind.
import { setTimeout as sleep } from 'node:timers/promises'
import { startOwnPostgres } from './own-postgres.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { newPro, post, send } from './subjects.mjs'

const outageMs = setting('POSTGRES_SECONDS', 8, 4) * 1_000
/** Milliseconds until an answer that the database is needed for, and until all is well again. */
const soon = 2_000
const recovery = 5_000

/** @type {import('./main.mjs').Drill} */
export async function postgres({ say, expect }) {
  const postgres = await startOwnPostgres(['max_connections=60'])
  const upstream = await startUpstream()
  const stage = await openStage({ postgres: postgres.url })
  try {
    const setting = {
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'] } }
routes:
  - { path: /public/small, upstream: service, plans: [pro] }
  - { path: /public/noise, upstream: service, free_daily: true }`,
      settings: 'limits: { free_daily: 1000000 }\nauth: { rate_limits: { refresh: 0 } }',
    }
    const replicas = [await stage.start(setting), await stage.start(setting)]
    const work = await startWork(replicas, stage.database)
    const faults = {
      'stopped at once': async () => {
        await postgres.stopAtOnce()
        await sleep(outageMs)
        await postgres.startAgain()
      },
      'stands still': async () => {
        postgres.pause()
        await sleep(outageMs)
        postgres.resume()
      },
      'has no connection left': async () => {
        const giveBack = await postgres.fillUp()
        await sleep(outageMs)
        await giveBack()
      },
    }
    for (const [fault, play] of Object.entries(faults)) {
      await sleep(2_000)
      const before = work.take()
      expect(
        `${fault}: all is well before`,
        before.every(({ status }) => status === 200),
        told(before),
      )
      await play()
      const back = performance.now()
      const during = work.take()
      await sleep(recovery)
      const recovering = work.take()
      await sleep(2_000)
      const after = work.take()
      const all = [...during, ...recovering]
      const wrong = all.filter(({ status }) => status !== 200 && status !== 503)
      expect(`${fault}: nothing but 200 and 503`, wrong.length === 0, `${told(all)}`)
      const slowest = Math.max(0, ...all.map(({ tookMs }) => tookMs))
      expect(
        `${fault}: answered within 2 s`,
        slowest < soon + 200,
        `${(slowest / 1_000).toFixed(2)} s at most`,
      )
      const last = Math.max(back, ...all.filter(({ status }) => status !== 200).map(({ at }) => at))
      expect(
        `${fault}: all is well within 5 s of its return`,
        after.every(({ status }) => status === 200),
        `the last failure ${((last - back) / 1_000).toFixed(1)} s after it; then ${told(after)}`,
      )
    }
    await work.stop()
    const statuses = await Promise.all(replicas.map(replica => ready(replica)))
    expect(
      'no process has ended',
      statuses.every(status => status === 200),
      statuses.join(' '),
    )
    say(`each fault lasted ${outageMs / 1_000} s`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
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
