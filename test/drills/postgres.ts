// Postgres stops at once, stands still, has no connection, no lock or no byte left, or fails over, under requests of every kind.
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
/** Milliseconds until an answer that needs the database, and until all is well again. */
const soon = 2_000
const recovery = 5_000

/** Postgres keeps 16 MiB of its log at a time, and its own tables are some 25 MiB. */
const diskMiB = 220
/** Of the loopback network. */
const standbyAddress = '127.0.14.2'

export async function postgres(watch: Watch): Promise<void> {
  const disk = mountSmallDisk(diskMiB)
  const folder = join(disk.path, 'server')
  mkdirSync(folder)
  const settings = ['max_connections=60', 'min_wal_size=32MB', 'max_wal_size=48MB']
  const server = await startOwnPostgres({ settings, folder })
  await underFaults(watch, { server, faults: faultsOf(server, disk) })
  await failOver(watch)
  watch.say(`each fault lasted ${outageMs / 1_000} s`)
}

/** By name; each resolves when Postgres is back. The argument is the URL of the database. */
type Faults = Readonly<Record<string, (database: string) => Promise<void>>>

function faultsOf(server: Server, disk: SmallDisk): Faults {
  return {
    async 'stopped at once'() {
      await server.kill()
      await sleep(outageMs)
      await server.restart()
    },
    async 'stands still'() {
      server.pause()
      await sleep(outageMs)
      server.resume()
    },
    async 'has no connection left'() {
      const giveBack = await fillUp(server.url)
      await sleep(outageMs)
      await giveBack()
    },
    async 'all connections of the pools wait for a lock'(database) {
      const client = new pg.Client({ connectionString: database })
      await client.connect()
      await client.query('begin')
      await client.query('lock table users in access exclusive mode')
      await sleep(outageMs)
      await client.end()
    },
    async 'its disk is full'(database) {
      disk.fill()
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
    async 'its disk is full, and it cannot write its log'(database) {
      disk.fill()
      await useUpTheLog(database)
      await sleep(outageMs)
      disk.free()
      await backOn(server, database)
    },
  }
}

/** Switches the segments of the log until Postgres has no more that it may use again. */
async function useUpTheLog(database: string): Promise<void> {
  const client = new pg.Client({ connectionString: database })
  client.on('error', () => {})
  await client.connect()
  try {
    for (let time = 0; time < 20; time += 1) await client.query('select pg_switch_wal(), txid_current()')
  } catch {
    // Postgres has ended.
  }
  await client.end().catch(() => {})
}

/** Waits until Postgres accepts connections. If it has ended because it could not even recover, this starts it. */
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

/** The database's name leads to the standby, which has been promoted. */
async function failOver(watch: Watch): Promise<void> {
  const server = await startOwnPostgres({ settings: ['max_connections=60'] })
  const standby = await startStandby(server, standbyAddress)
  const names = await startOwnNameServer()
  await names.setAddresses('db.test', ['127.0.0.1'])
  const faults: Faults = {
    async 'fails over to another address behind the same name'() {
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
  /** The name of the server's host, if replicas connect by one. */
  readonly name?: string
  /** The URL of the server that has the database in the end. */
  readonly standby?: string
  /** The command that runs the replicas. */
  readonly before?: readonly string[]
}

async function underFaults(
  { say, expect }: Watch,
  { server, faults, name, standby, before = [] }: Case,
): Promise<void> {
  // A stall of this process is not the gateway's.
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
        `${fault}: all is well before`,
        before.length > 0 && before.every(({ status }) => status === 200),
        told(before),
      )
      await play(stage.url)
      judge(expect, fault, await untilWell(work))
    }
    await work.stop()
    const statuses = await Promise.all(replicas.map(readiness))
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

interface Answer {
  readonly kind: string
  /** 0 if the connection failed. */
  readonly status: number
  /** When the request was sent, by `performance.now()`. */
  readonly at: number
  readonly tookMs: number
}

interface Recovery {
  /** When Postgres was back, by `performance.now()`. */
  readonly back: number
  /** The answers during the fault and while the gateway may recover. */
  readonly all: readonly Answer[]
  /** The answers after that. */
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

async function readiness({ admin }: Replica): Promise<number> {
  return (await fetch(`http://127.0.0.1:${admin}/readyz`)).status
}

function told(answers: readonly Answer[]): string {
  return countsOf(answers.map(({ kind, status }) => `${kind} ${status}`))
}

interface Work {
  /** Returns the answers since the last call. */
  take(): Answer[]
  stop(): Promise<void>
}

/** Sends requests of paying and of free users, logins and refreshes to the replicas in turn. */
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
      // After a 503 the token may be used up although the client has no new one: it signs in again.
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
