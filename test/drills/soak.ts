// A gateway runs under every kind of load for an hour. Heap, handles, sockets and database connections do not grow.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'
import { createAccounts, noRateLimits } from './accounts.ts'
import { createUsers, emit, newSecret } from './alerts.ts'
import { expectFlat, lookRepeatedly } from './growth.ts'
import { watchHeaps } from './heaps.ts'
import { residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { prepare, routing } from './reload.ts'
import { startReloadLoad } from './reload-load.ts'
import { openStage, type Replica } from './replicas.ts'
import { setting } from './settings.ts'
import { startUpstream } from './stage.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const duration = setting('SOAK_SECONDS', 3_600, 90) * 1_000
/**
 * The duration of the warm-up in milliseconds. During the warm-up, code is compiled, and pools and caches become full.
 */
const warmUp = Math.min(120_000, duration / 3)
const bars = {
  heap: { name: 'heap after garbage collection, MiB', most: 6 },
  handles: { name: 'number of handles and timers', most: 12 },
  sockets: { name: 'number of file descriptors', most: 12 },
  database: { name: 'number of connections to the database', most: 3 },
}

export async function soak(watch: Watch): Promise<void> {
  const { say, expect } = watch
  const upstream = await startUpstream()
  const stage = await openStage()
  let everything: Everything | undefined
  try {
    const heaps = watchHeaps(stage.folder)
    const gateway = await stage.start({
      // The tokens must be valid until the drill ends.
      routing: `auth: { access_token_ttl: 24h, ${noRateLimits} }
webhooks: { allow_private_networks: true }
mail: { smtp: 'smtp://127.0.0.1:1', from: 'drill@example.com', verify_on_register: true, rate_limits: { per_address: 0 } }
events: { url: 'http://127.0.0.1:${upstream.port}/events?status=204', secret: '${newSecret()}' }
${routing(upstream.port, 0)}`,
      env: heaps.env,
    })
    const { pid } = gateway
    everything = await startEverything(gateway, stage)
    await sleep(warmUp)
    const looks = await lookRepeatedly(duration, async () => {
      const [{ heapUsed, counts } = { heapUsed: 0, counts: {} }] = await heaps.of([pid])
      return {
        heap: heapUsed / MiB,
        handles: Object.values(counts).reduce((sum, count) => sum + count, 0),
        sockets: readdirSync(`/proc/${pid}/fd`).length,
        database: await connectionsOf(stage.database),
      }
    })
    const { done, failed } = await everything.stop()
    say(`${JSON.stringify(done)}; resident memory ${residentOf(pid).toFixed(0)} MiB`)
    expectFlat(watch, '', bars, looks, duration)
    expect('no request fails', failed.length === 0, failed.slice(0, 5).join('; ') || 'none')
  } finally {
    await everything?.stop()
    await stage.stop()
    await upstream.stop()
  }
}

interface Everything {
  /** Stops the load. A second call returns the same result. */
  stop(): Promise<{ done: Readonly<Record<string, number>>; failed: string[] }>
}

/** Starts requests, streams, WebSockets, registrations, sessions, alerts to absent receivers, and reloads. */
async function startEverything(
  gateway: Replica,
  { database, file }: { database: Pool; file: string },
): Promise<Everything> {
  const { port, admin, pid } = gateway
  const load = startReloadLoad(port, await prepare(port, database))
  const emails = await createAccounts(database, 4)
  const receivers = Array.from({ length: 10 }, (_, i) => `127.0.1.${i + 1}:1`)
  const webhooks = receivers.map(receiver => ({ url: `https://${receiver}/`, receiver, secret: newSecret() }))
  const users = await createUsers(database, webhooks)
  const text = readFileSync(file, 'utf8')
  const done: Record<string, number> = {}
  const failed: string[] = []
  let isOver = false

  function check(what: string, status: number, expected: number): void {
    if (status !== expected) failed.push(`${what} ${status}`)
  }

  async function repeat(kind: string, everyMs: number, work: (nth: number) => Promise<void>): Promise<void> {
    for (let nth = 0; !isOver; nth += 1) {
      await work(nth)
      done[kind] = nth + 1
      await sleep(everyMs)
    }
  }

  const running = [
    repeat('registrations', 1_000, async nth => {
      const { status } = await post(port, 'register', { email: `soaked-${nth}@example.com`, password })
      check('registration', status, 201)
    }),
    repeat('sessions', 200, async nth => {
      const login = await post(port, 'login', { email: emails[nth % emails.length], password })
      const refreshed = await post(port, 'refresh', { refresh_token: login.body.refresh_token })
      const { status } = await post(port, 'logout', { refresh_token: refreshed.body.refresh_token })
      check('login', login.status, 200)
      check('refresh', refreshed.status, 200)
      check('logout', status, 200)
    }),
    repeat('alerts', 100, async nth => {
      const { status } = await emit(admin, {
        type: 'drill.alert',
        data: { number: nth },
        user_id: users[nth % users.length],
      })
      check('alert', status, 202)
    }),
    repeat('reloads', 10_000, async nth => {
      writeFileSync(file, `${text}\n# ${nth}\n`)
      process.kill(pid, 'SIGHUP')
    }),
  ]

  async function end() {
    isOver = true
    await Promise.all(running)
    await load.stop()
    const { requests, streams, webSockets } = load.seen
    return {
      done: { ...done, requests, streams, webSockets },
      failed: [...failed, ...load.failed, ...load.broken],
    }
  }

  let ending: ReturnType<typeof end> | undefined
  return {
    stop() {
      ending ??= end()
      return ending
    },
  }
}

async function connectionsOf(database: Pool): Promise<number> {
  const { rows } = await database.query<{ n: number }>(
    'select count(*)::integer as n from pg_stat_activity where datname = current_database()',
  )
  return rows[0]?.n ?? 0
}
