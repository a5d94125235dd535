// While clients send requests of every kind, Postgres stops, hangs, fails over, locks a table, or runs out of
// connections or disk space.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import pg, { type Pool } from 'pg'
import { password } from '../support/client.ts'
import { startOwnNameServer } from '../support/name-server.ts'
import { isAlive } from '../support/process-stat.ts'
import type { Server } from '../support/servers.ts'
import { fillUp, onServer, startOwnPostgres, startStandby } from '../support/stores.ts'
import { openStage, type Replica } from './replicas.ts'
import { setting } from './settings.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { startUpstream } from './stage.ts'
import { newPro, post, send } from './subjects.ts'
import { countsOf, type Watch } from './watch.ts'

const outageMs = setting('POSTGRES_SECONDS', 8, 4) * 1_000
/**
 * The limits in milliseconds. `soon` is the maximum duration of a request that needs the database. `recovery` is the
 * maximum time from the end of a fault until all requests succeed again.
 */
const soon = 2_000
const recovery = 5_000

/** The size of the disk. A segment of the write-ahead log has 16 MiB, and the system tables need about 25 MiB. */
const diskMiB = 220
/** The loopback address of the standby. */
const standbyAddress = '127.0.14.2'

export async function postgres(watch: Watch): Promise<void> {
  const disk = mountSmallDisk(diskMiB)
  const folder = join(disk.path, 'server')
  mkdirSync(folder)
  const settings = ['max_connections=60', 'min_wal_size=32MB', 'max_wal_size=48MB']
  const server = await startOwnPostgres({ settings, folder })
  await underFaults(watch, { server, faults: faultsOf(server, disk) })
  await failOver(watch)
  watch.say(`each fault lasts ${outageMs / 1_000} s`)
}

/**
 * Maps the name of a fault to the function that causes it. The function gets the URL of the database, and resolves when
 * Postgres works again.
 */
type Faults = Readonly<Record<string, (database: string) => Promise<void>>>

function faultsOf(server: Server, disk: SmallDisk): Faults {
  return {
    async 'Postgres is killed'() {
      await server.kill()
      await sleep(outageMs)
      await server.restart()
    },
    async 'Postgres hangs'() {
      server.pause()
      await sleep(outageMs)
      server.resume()
    },
    async 'Postgres has no free connection'() {
      const giveBack = await fillUp(server.url)
      await sleep(outageMs)
      await giveBack()
    },
    async 'all pool connections wait for a lock'(database) {
      const client = new pg.Client({ connectionString: database })
      await client.connect()
      await client.query('begin')
      await client.query('lock table users in access exclusive mode')
      await sleep(outageMs)
      await client.end()
    },
    async 'the disk is full'(database) {
      disk.fill()
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
    async 'the disk is full, even for the write-ahead log'(database) {
      disk.fill()
      await useUpTheLog(database)
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
  }
}

/** Starts new segments of the write-ahead log until the disk has no space for another segment. */
async function useUpTheLog(database: string): Promise<void> {
  const client = new pg.Client({ connectionString: database })
  client.on('error', () => {})
  await client.connect()
  try {
    for (let time = 0; time < 20; time += 1) await client.query('select pg_switch_wal(), txid_current()')
  } catch {
    // This error is expected: Postgres ends when the disk is full.
  }
  await client.end().catch(() => {})
}

/** Waits until Postgres accepts connections. Starts Postgres if it has ended. */
async function backOn(server: Server, database: string): Promise<void> {
  if (!isAlive(server.pid)) await server.restart()
  for (let waitedMs = 0; waitedMs < 30_000; waitedMs += 100) {
    const isBack = await onServer(database, 'select 1').then(
      () => true,
      () => false,
    )
    if (isBack) return
    await sleep(100)
  }
}

/** Kills the server, promotes the standby, and points the DNS name of the database to the standby. */
async function failOver(watch: Watch): Promise<void> {
  const server = await startOwnPostgres({ settings: ['max_connections=60'] })
  const standby = await startStandby(server, standbyAddress)
  const names = await startOwnNameServer()
  await names.setAddresses('db.test', ['127.0.0.1'])
  const faults: Faults = {
    async 'Postgres fails over to another address of the same name'() {
      await server.kill()
      await sleep(outageMs / 2)
      await standby.promote()
      await names.setAddresses('db.test', [standbyAddress])
    },
  }
  try {
    await underFaults(watch, {
      server,
      faults,
      name: 'db.test',
      standby: standby.url,
      before: names.command,
    })
  } finally {
    await names.stop()
  }
}

interface Case {
  readonly server: Server
  readonly faults: Faults
  /** The DNS name of the server, if replicas connect by name. */
  readonly name?: string
  /** The URL of the standby. After the failover, the replicas use the database on the standby. */
  readonly standby?: string
  /** The command that runs each replica, for example `unshare`. */
  readonly before?: readonly string[]
}

async function underFaults(
  { say, expect }: Watch,
  { server, faults, name, standby, before = [] }: Case,
): Promise<void> {
  // While the process of the drill is blocked, responses seem slower than they are. So the drill reports how long the
  // process was blocked.
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  const upstream = await startUpstream()
  const stage = await openStage({
    postgres: server.url,
    ...(standby === undefined ? {} : { standby }),
  })
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
        `${fault}: every request gets a 200 before the fault`,
        before.length > 0 && before.every(({ status }) => status === 200),
        told(before),
      )
      await play(stage.url)
      judge(expect, fault, await untilWell(work))
    }
    await work.stop()
    const statuses = await Promise.all(replicas.map(readiness))
    expect(
      'no gateway process has ended',
      statuses.every(status => status === 200),
      statuses.join(' '),
    )
    say(`the drill process was blocked for at most ${(own.max / 1e6).toFixed(0)} ms`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

interface Answer {
  readonly kind: string
  /** The status code; 0 if the connection failed. */
  readonly status: number
  /** The time when the request was sent, as a value of `performance.now()`. */
  readonly at: number
  readonly tookMs: number
}

interface Recovery {
  /** The time when Postgres was back, as a value of `performance.now()`. */
  readonly back: number
  /** The responses during the fault and the recovery. */
  readonly all: readonly Answer[]
  /** The responses after the recovery. */
  readonly after: readonly Answer[]
}

async function untilWell(work: Work): Promise<Recovery> {
  const back = performance.now()
  const during = work.take()
  await sleep(recovery)
  const recovering = work.take()
  await sleep(2_000)
  return { back, all: [...during, ...recovering], after: work.take() }
}

function judge(expect: Watch['expect'], fault: string, { back, all, after }: Recovery): void {
  const wrong = all.filter(({ status }) => status !== 200 && status !== 503)
  expect(`${fault}: all responses are 200 or 503`, wrong.length === 0, `${told(all)}`)
  const slowest = Math.max(0, ...all.map(({ tookMs }) => tookMs))
  expect(
    `${fault}: responses take at most 2 s`,
    slowest < soon + 200,
    `at most ${(slowest / 1_000).toFixed(2)} s`,
  )
  const last = Math.max(back, ...all.filter(({ status }) => status !== 200).map(({ at }) => at))
  expect(
    `${fault}: every request gets a 200 again within 5 s`,
    after.length > 0 && after.every(({ status }) => status === 200),
    `last failure after ${((last - back) / 1_000).toFixed(1)} s; then ${told(after)}`,
  )
}

async function readiness({ admin }: Replica): Promise<number> {
  return (await fetch(`http://127.0.0.1:${admin}/readyz`)).status
}

function told(answers: readonly Answer[]): string {
  return countsOf(answers.map(({ kind, status }) => `${kind} ${status}`))
}

interface Work {
  /** Returns the responses since the last call. */
  take(): Answer[]
  stop(): Promise<void>
}

/** Sends requests of paying and free users, logins and refreshes to the replicas in turn. */
async function startWork(replicas: readonly Replica[], database: Pool): Promise<Work> {
  let turn = 0
  const somewhere = () => {
    turn += 1
    return replicas[turn % replicas.length]?.port ?? 0
  }
  const paying = await newPro(somewhere(), database, 'paying')
  const free = await newPro(somewhere(), database, 'free')
  await database.query("update users set plan = 'free' where id = $1", [free.id])
  const login = () => post(somewhere(), 'login', { email: 'paying@drill.test', password })
  let refreshToken = (await login()).body.refresh_token
  let answers: Answer[] = []
  let isStopping = false
  const every = async (pauseMs: number, kind: string, ask: () => Promise<{ status: number }>) => {
    while (!isStopping) {
      const at = performance.now()
      const { status } = await ask()
      answers.push({ kind, status, at, tookMs: performance.now() - at })
      await sleep(pauseMs)
    }
  }
  const running = [
    every(20, 'paying', () => send(somewhere(), 'GET', '/public/small', paying.headers)),
    every(50, 'free', () => send(somewhere(), 'GET', '/public/noise?bytes=10', free.headers)),
    every(200, 'login', login),
    every(200, 'refresh', async () => {
      const answer =
        refreshToken === undefined
          ? await login()
          : await post(somewhere(), 'refresh', { refresh_token: refreshToken })
      // A response with a 503 contains no token, and the old refresh token may no longer be valid. So the next turn
      // logs in again.
      refreshToken = answer.body.refresh_token
      return answer
    }),
  ]
  return {
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
