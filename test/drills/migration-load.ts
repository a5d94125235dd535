// A large database is migrated while gateways of the previous release use it. No client is affected.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'
import { createAccounts, login, noRateLimits } from './accounts.ts'
import { startLoad } from './load.ts'
import { openStage } from './replicas.ts'
import { setting } from './settings.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const older = process.env.OLDER_PROGRAM ?? ''
const users = setting('MIGRATION_USERS', 100_000, 10_000)
const sessionsEach = 3
const clients = 8
/** The milliseconds between two requests of a client. */
const paceMs = 20

export async function migrationLoad({ say, expect }: Watch): Promise<void> {
  if (older === '')
    throw new Error('OLDER_PROGRAM is not set. Set it to the folder of the built previous release.')
  const upstream = await startUpstream()
  const stage = await openStage()
  const serving = {
    settings: `auth: { ${noRateLimits} }\nlimits: { free_daily: 1000000 }`,
    routing: `${serviceAt(upstream.port)}
routes:
  - { path: /public/small, upstream: service, free_daily: true }`,
    program: join(older, 'dist/cli.js'),
  }
  try {
    const ports = [(await stage.start(serving)).port, (await stage.start(serving)).port] as const
    await fill(stage.database)
    const emails = await createAccounts(stage.database, clients)
    const [free = ''] = emails
    await stage.database.query("update users set plan = 'free' where email = $1", [free])
    const { access } = await login(ports[0], free)
    const headers = { authorization: `Bearer ${access}` }
    const loads = ports.map(port => startLoad(port, { perSecond: 50, headers }))
    const busy = startClients(ports, emails)
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
    const all = done + loads.reduce((sum, load) => sum + load.done, 0)
    const worst = Math.max(slowest, ...results.map(result => result.worst))
    say(
      `${users} users with ${users * sessionsEach} sessions of the previous release; the migration took ${took.toFixed(0)} ms, including its start`,
    )
    expect(
      'no login, refresh, logout or counted use fails during the migration',
      failed.length === 0,
      `${failed.length} of ${all} ${[...new Set(failed)]}; maximum ${worst.toFixed(0)} ms`,
    )
    expect(
      'no statement waits longer than a second for a lock',
      waits.longest < 1_000,
      `at most ${waits.longest.toFixed(0)} ms, ${waits.looks} waits seen`,
    )
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** Fills the tables. Uses only columns that the previous release has. */
async function fill(database: Pool): Promise<void> {
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

interface Seen {
  done: number
  readonly failures: string[]
  /** The milliseconds of the slowest request. */
  slowest: number
}

/**
 * Starts clients. Their requests cause every kind of write that the previous release makes to `refresh_tokens` and
 * `users`.
 */
function startClients(
  [one, other]: readonly [number, number],
  emails: readonly string[],
): { stop(): Promise<Seen> } {
  const seen: Seen = { done: 0, failures: [], slowest: 0 }
  const start = performance.now()
  let isOver = false
  /** @returns the body if the status code is 200; otherwise `undefined` */
  const timed = async (port: number, endpoint: string, body: object) => {
    const begun = performance.now()
    const answer = await post(port, endpoint, body)
    seen.slowest = Math.max(seen.slowest, performance.now() - begun)
    if (answer.status === 200) seen.done += 1
    else seen.failures.push(`${endpoint} ${answer.status}, ${(performance.now() - start).toFixed(0)} ms`)
    await sleep(paceMs)
    return answer.status === 200 ? answer.body : undefined
  }
  const client = async (email: string) => {
    while (!isOver) {
      let pair = await timed(one, 'login', { email, password })
      // After a failed request, the client sends no further refresh, but logs in again. So one failure causes no
      // further failures.
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

interface Waits {
  /** The milliseconds of the longest wait. */
  longest: number
  /** The number of samples in which a statement waited. */
  looks: number
}

/** Looks every 20 ms for statements that wait for a lock. */
function watchLocks(database: Pool): { stop(): Promise<Waits> } {
  const waits: Waits = { longest: 0, looks: 0 }
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await database.query<{ ms: string }>(
        `select extract(epoch from clock_timestamp() - max_wait.since) * 1000 as ms
           from (select min(waitstart) as since from pg_locks
                  where not granted and locktype <> 'advisory'
                    and database = (select oid from pg_database where datname = current_database())) max_wait
          where max_wait.since is not null`,
      )
      if (rows.length > 0) waits.looks += 1
      for (const { ms } of rows) waits.longest = Math.max(waits.longest, Number(ms))
      await sleep(20)
    }
  })()
  return {
    async stop() {
      isOver = true
      await watching
      return waits
    },
  }
}
