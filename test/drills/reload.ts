// Under load, the configuration changes twice per second. The drill tests a gateway with one process, and then a
// gateway with two workers. No client is affected, and the gateway leaks no memory.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { scrape } from '../support/scrape.ts'
import type { Callers } from './console-load.ts'
import { type Heap, watchHeaps } from './heaps.ts'
import { residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { startReloadLoad } from './reload-load.ts'
import { openStage } from './replicas.ts'
import { setting } from './settings.ts'
import { startUpstream } from './stage.ts'
import { newPro } from './subjects.ts'
import type { Watch } from './watch.ts'

/**
 * `interval` is the number of milliseconds between two reloads. `duration` is the number of milliseconds for which
 * reloads run under load.
 */
const interval = 500
const duration = setting('RELOAD_SECONDS', 60, 5) * 1_000

/** The number of reloads without load. During these reloads, the heap must grow by less than 4 MiB. */
const inARow = setting('RELOAD_TIMES', 2_000, 100)

export async function reload(watch: Watch): Promise<void> {
  for (const workers of [1, 2]) await withWorkers(workers, watch)
}

async function withWorkers(workers: number, { say, expect }: Watch): Promise<void> {
  const title = workers === 1 ? 'one process:' : `${workers} workers:`
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    const heaps = watchHeaps(stage.folder)
    const gateway = await stage.start({
      server: `, workers: ${workers}`,
      routing: routing(upstream.port, 0),
      env: heaps.env,
    })
    const [unchanged = ''] = readFileSync(stage.file, 'utf8').split('limits:')
    let turn = 0
    const change = () => {
      turn += 1
      replaceFile(stage.file, unchanged + routing(upstream.port, turn))
      process.kill(gateway.pid, 'SIGHUP')
    }
    const callers = await prepare(gateway.port, stage.database)

    // These reloads are a warm-up: code is compiled, and the memory grows to its working size.
    await inTurn(100, gateway.admin, change)
    const beforeLoad = await heaps.of(gateway.pids)
    const load = startReloadLoad(gateway.port, callers)
    await sleep(1_000)
    const before = await reloadsOf(gateway.admin)
    const turnBefore = turn
    const end = performance.now() + duration
    for (let next = performance.now(); performance.now() < end; next += interval) {
      change()
      await sleep(Math.max(0, next + interval - performance.now()))
    }
    await sleep(2_500)
    const after = await reloadsOf(gateway.admin)
    const { ownStall } = await load.stop()
    const changes = turn - turnBefore
    const taken = after.success - before.success
    const { requests, streams, webSockets, messages } = load.seen
    say(
      `${title} ${changes} changes, ${taken} reloads; ${requests} requests, ` +
        `${streams} streams of 2 s, ${webSockets} WebSockets with ${messages} messages; the client process was blocked for at most ${ownStall.toFixed(0)} ms`,
    )
    expect(`${title} no request fails`, load.failed.length === 0, some(load.failed))
    expect(`${title} no stream or WebSocket breaks`, load.broken.length === 0, some(load.broken))
    expect(
      `${title} every reload is accepted`,
      after.failure === 0 && taken >= 0.8 * changes,
      `${taken} of ${changes}, ${after.failure} refused`,
    )

    await inTurn(1, gateway.admin, change)
    const afterLoad = await heaps.of(gateway.pids)
    const resident = gateway.pids.map(residentOf)
    await inTurn(inARow, gateway.admin, change)
    const last = await heaps.of(gateway.pids)
    for (const [i, pid] of gateway.pids.entries()) {
      const name = `${title} process ${i}`
      say(
        `${name}: resident memory ${resident[i]?.toFixed(0)} MiB after the load, ${residentOf(pid).toFixed(0)} MiB after ${inARow} more reloads`,
      )
      judgeHeaps(name, [beforeLoad[i], afterLoad[i], last[i]], expect)
    }
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

function judgeHeaps(
  name: string,
  heaps: readonly [Heap | undefined, Heap | undefined, Heap | undefined],
  expect: Watch['expect'],
): void {
  const [before = 0, loaded = 0, last = 0] = heaps.map(heap => (heap?.heapUsed ?? 0) / MiB)
  const [timersBefore = 0, , timersLast = 0] = heaps.map(heap => heap?.counts.Timeout ?? 0)
  expect(
    `${name}: the heap grows by less than 4 MiB in ${inARow} reloads`,
    last - loaded < 4,
    `${before.toFixed(1)} MiB before, ${loaded.toFixed(1)} MiB after the load, ${last.toFixed(1)} MiB at the end`,
  )
  expect(
    `${name}: no timer is left behind`,
    timersLast <= timersBefore + 2,
    `${timersBefore} before, ${timersLast} at the end`,
  )
}

/** Creates a pro user and a free user without uses left. */
export async function prepare(port: number, database: Pool): Promise<Callers> {
  const pro = await newPro(port, database, 'pro')
  const free = await newPro(port, database, 'free')
  await database.query(
    `update users set plan = 'free', daily_usage = 100, last_usage_date = (now() at time zone 'utc')::date where id = $1`,
    [free.id],
  )
  await sleep(500)
  return { bearer: pro.headers, spent: free.headers }
}

/** Returns a different configuration for each turn. Routes, settings of an upstream and the daily limit change. */
export function routing(port: number, turn: number): string {
  const targets = `targets: ['http://127.0.0.1:${port}'], connections_per_client: 128`
  return `limits: { free_daily: ${1 + (turn % 3)} }
upstreams:
  changing: { ${targets}, timeouts: { response: ${30_000 + turn}ms }, health: { path: /state, interval: 1s } }
  steady: { ${targets} }
routes:
  - { path: /public/*, upstream: changing, auth: none }
  - { name: bearer, path: /bearer/*, rewrite: /public/*, upstream: changing, rate_limit: 1000000/1m }
  - { name: counted, path: /counted/*, rewrite: /public/*, upstream: steady, free_daily: true }
  - { name: talk, path: /talk, upstream: ${turn % 2 === 0 ? 'steady' : 'changing'}, websocket: true }
  - { name: turn, path: /turn-${turn}, upstream: steady }
`
}

/** Replaces the whole file in one step, so that the gateway never reads a half-written file. */
export function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** Makes `times` changes, one after the other. After each change, waits until the change is active. */
async function inTurn(times: number, admin: number, change: () => void): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    const { success } = await reloadsOf(admin)
    change()
    const late = performance.now() + 30_000
    while ((await reloadsOf(admin)).success === success) {
      if (performance.now() > late) throw new Error('a reload did not succeed within 30 s')
      await sleep(2)
    }
  }
}

/** Returns the numbers of successful and failed reloads since the start of the gateway. */
export async function reloadsOf(admin: number): Promise<{ success: number; failure: number }> {
  const { value } = await scrape(`http://127.0.0.1:${admin}`)
  const count = (result: string) => value('peage_config_reloads_total', { result })
  return { success: count('success'), failure: count('failure') }
}

function some(all: readonly string[]): string {
  return all.length === 0 ? 'none' : `${all.length}: ${[...new Set(all)].slice(0, 5).join('; ')}`
}
