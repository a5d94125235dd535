// A database of the release before, with many users and sessions, is migrated while that release serves: nobody notices.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAccounts, login, noRateLimits, password } from './accounts.mjs'
import { startLoad } from './load.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { post } from './subjects.mjs'

const older = process.env.OLDER_PROGRAM ?? ''
const users = setting('MIGRATION_USERS', 100_000, 10_000)
const sessionsEach = 3
const clients = 8
/** Requests of a client start this long after each other. */
const paceMs = 20

/** @type {import('./main.mjs').Drill} */
export async function migrationLoad({ say, expect }) {
  if (older === '') throw new Error('this drill needs OLDER_PROGRAM, the folder of the release before, built')
  const upstream = await startUpstream()
  const stage = await openStage()
  const serving = {
    settings: `auth: { ${noRateLimits} }\nlimits: { free_daily: 1000000 }`,
    routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service, free_daily: true }`,
    program: join(older, 'dist/cli.js'),
  }
  try {
    const replicas = [await stage.start(serving), await stage.start(serving)]
    await fill(stage.database)
    const emails = await createAccounts(stage.database, clients)
    await stage.database.query("update users set plan = 'free' where email = $1", [emails[0]])
    const { access } = await login(replicas[0].port, emails[0] ?? '')
    const headers = { authorization: `Bearer ${access}` }
    const loads = replicas.map(({ port }) => startLoad(port, { perSecond: 50, headers }))
    const busy = startClients(replicas, emails)
    const locks = watchLocks(stage.database)
    await sleep(3_000)
    const begun = performance.now()
    await stage.migrate(serving)
    const took = performance.now() - begun
    await sleep(2_000)
    const waits = await locks.stop()
    const { done, failures, slowest } = await busy.stop()
    const results = await Promise.all(loads.map(load => load.stop()))
    const failed = [...failures, ...loads.flatMap(load => load.failures)]
    say(
      `${users} users with ${users * sessionsEach} sessions of the release before; migrated in ${took.toFixed(0)} ms, with its start`,
    )
    expect(
      'no request fails meanwhile: logins, exchanges, logouts, counted uses',
      failed.length === 0,
      `${failed.length} of ${done + loads.reduce((sum, load) => sum + load.done, 0)} ${[...new Set(failed)]}; the slowest ${Math.max(slowest, ...results.map(({ worst }) => worst)).toFixed(0)} ms`,
    )
    expect(
      'nobody waits for a lock for a second',
      waits.longest < 1_000,
      `${waits.longest.toFixed(0)} ms at most, seen ${waits.looks} times in all`,
    )
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** Straight into the tables, in the columns that the release before has. */
async function fill(database) {
  await database.query(
    `insert into users (email, password_hash, plan)
     select 'stored' || i || '@drill.test', '-', 'free' from generate_series(1, $1) i`,
    [users],
  )
  await database.query('insert into subscriptions (user_id, plan) select id, plan from users')
  await database.query(
    `insert into refresh_tokens (user_id, token_hash, expires_at)
     select id, md5(id || ' ' || nth), now() + interval '30 days' from users, generate_series(1, $1) nth`,
    [sessionsEach],
  )
  await database.query('vacuum analyze')
}

/** What the release before writes in refresh_tokens and users, in each way. */
function startClients(replicas, emails) {
  const seen = { done: 0, failures: [], slowest: 0, begun: performance.now() }
  let isOver = false
  const timed = async (port, endpoint, body) => {
    const begun = performance.now()
    const { status, body: answered } = await post(port, endpoint, body)
    seen.slowest = Math.max(seen.slowest, performance.now() - begun)
    if (status === 200) seen.done += 1
    else seen.failures.push(`${endpoint} ${status}, ${(performance.now() - seen.begun).toFixed(0)} ms`)
    await sleep(paceMs)
    return status === 200 ? answered : undefined
  }
  const [one, other] = replicas.map(({ port }) => port)
  const client = async email => {
    while (!isOver) {
      let pair = await timed(one, 'login', { email, password })
      // Whoever is not answered signs in again: one failure counts once.
      for (const port of [other, one, other, one, other])
        pair = pair && (await timed(port, 'refresh', { refresh_token: pair.refresh_token }))
      if (pair) await timed(one, 'logout', { refresh_token: pair.refresh_token })
    }
  }
  const all = emails.map(client)
  return {
    async stop() {
      isOver = true
      await Promise.all(all)
      return seen
    },
  }
}

/** Looks every 20 ms at who waits for a lock, and since when. */
function watchLocks(database) {
  const seen = { longest: 0, looks: 0 }
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await database.query(
        `select extract(epoch from clock_timestamp() - max_wait.since) * 1000 as ms
           from (select min(waitstart) as since from pg_locks
                  where not granted and locktype <> 'advisory'
                    and database = (select oid from pg_database where datname = current_database())) max_wait
          where max_wait.since is not null`,
      )
      if (rows.length > 0) seen.looks += 1
      for (const { ms } of rows) seen.longest = Math.max(seen.longest, Number(ms))
      await sleep(20)
    }
  })()
  return {
    async stop() {
      isOver = true
      await watching
      return seen
    },
  }
}
