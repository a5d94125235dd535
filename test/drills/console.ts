// The console is open in a browser for an hour while the gateway is under load. The drill tests a gateway with one
// process and a gateway with two workers. Neither the tab nor the gateway leaks memory. The figures in the console
// match the load.
import { setTimeout as sleep } from 'node:timers/promises'
import type { OverviewSeries } from '../../src/admin/overview.ts'
import { scrape } from '../support/scrape.ts'
import { costOfOpenConsole } from './console-cost.ts'
import { type Callers, type Counted, startCountedLoad } from './console-load.ts'
import { type ConsoleTab, openConsole } from './console-tab.ts'
import { manyUsers } from './console-users.ts'
import { expectFlat, lookRepeatedly } from './growth.ts'
import { watchHeaps } from './heaps.ts'
import { residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { prepare } from './reload.ts'
import { adminToken, openStage, type Replica } from './replicas.ts'
import { setting } from './settings.ts'
import { startUpstream } from './stage.ts'
import type { Watch } from './watch.ts'

const duration = setting('CONSOLE_SECONDS', 3_600, 60) * 1_000
/**
 * The duration of the warm-up in milliseconds. After the warm-up, code is compiled and caches are full. But the charts
 * are full only after 15 minutes.
 */
const warmUp = Math.min(120_000, duration / 3)
const perSecond = setting('CONSOLE_PER_SECOND', 100, 100)
/**
 * The duration in milliseconds of the load for which the drill compares the figures. It must be less than 15 minutes,
 * because the overview contains only the last 15 minutes.
 */
const counted = setting('CONSOLE_COUNTED_SECONDS', 300, 30) * 1_000
const step = 10_000
const bars = {
  heap: { name: 'heap of the tab after garbage collection, MiB', most: 1 },
  resident: { name: 'resident memory of the tab, MiB', most: 16 },
  nodes: { name: 'number of elements of the page', most: 60 },
  listeners: { name: 'number of listeners of the page', most: 20 },
  gateway: { name: 'heaps of the gateway after garbage collection, MiB', most: 6 },
}

export async function consoleOpen(watch: Watch): Promise<void> {
  const upstream = await startUpstream()
  try {
    await manyUsers(watch)
    await Promise.all([1, 2].map(workers => withWorkers(workers, upstream.port, watch)))
    await costOfOpenConsole(upstream.port, watch)
  } finally {
    await upstream.stop()
  }
}

async function withWorkers(workers: number, upstream: number, watch: Watch): Promise<void> {
  const { say, expect } = watch
  const title = workers === 1 ? 'one process: ' : `${workers} workers: `
  const stage = await openStage()
  let open: ConsoleTab | undefined
  try {
    const heaps = watchHeaps(stage.folder)
    const gateway = await stage.start({
      server: `, workers: ${workers}`,
      routing: routing(upstream),
      env: heaps.env,
    })
    const callers = await prepare(gateway.port, stage.database)
    const tab = await openConsole(gateway.admin, adminToken)
    open = tab
    const load = startCountedLoad(gateway.port, callers, perSecond)
    await sleep(warmUp)
    const looks = await lookRepeatedly(duration, async () => ({
      ...(await tab.memory()),
      gateway: (await heaps.sumOf(gateway.pids)) / MiB,
    }))
    const { requests } = await load.stop()
    expect(
      `${title}every request gets the expected status code`,
      load.wrong.length === 0,
      `${load.wrong.length} of ${requests} do not ${[...new Set(load.wrong)].slice(0, 5).join('; ')}`.trim(),
    )
    expectFlat(watch, title, bars, looks, duration)
    const resident = gateway.pids.map(pid => residentOf(pid).toFixed(0)).join(', ')
    say(`${title}the resident memory of the gateway is ${resident} MiB`)
    await compare(title, { gateway, callers, tab }, watch)
  } finally {
    await open?.close()
    await stage.stop()
  }
}

interface Playing {
  readonly gateway: Replica
  readonly callers: Callers
  readonly tab: ConsoleTab
}

/**
 * Compares three counts of the same requests. The counts come from the overview in the console, from `/metrics`, and
 * from the load itself.
 */
async function compare(title: string, playing: Playing, { expect }: Watch): Promise<void> {
  const { gateway, callers, tab } = playing
  // The overview contains one figure for each time step. So the drill starts to count when a step has ended, and when
  // the page has loaded the figures of this step.
  await endOfStep()
  const from = Math.floor(Date.now() / step) * (step / 1_000)
  const before = await countsOf(gateway.admin)
  const load = startCountedLoad(gateway.port, callers, perSecond)
  await sleep(counted)
  const { overview: given, shown } = await tab.given()
  const own = await load.stop()
  await endOfStep()
  const after = await countsOf(gateway.admin)
  const { at, requests, errors, refused } = (await tab.given()).overview
  const sum = (series: OverviewSeries['requests'] = []) =>
    series.reduce<number>((total, value, index) => total + ((at[index] ?? 0) > from ? (value ?? 0) : 0), 0)
  const compareFigure = (name: string, ...[first, second, third]: [number, number, number]) =>
    expect(
      `${title}${name}: the overview, /metrics and the load agree within 1 %`,
      [first, second].every(other => Math.abs(other - third) <= third / 100),
      `${first}, ${second} and ${third}`,
    )
  compareFigure('requests', sum(requests), after.requests - before.requests, own.requests)
  compareFigure('errors', sum(errors), after.errors - before.errors, own.errors)
  for (const [guard, count] of Object.entries(own.refused)) {
    const measured = (after.refused[guard] ?? 0) - (before.refused[guard] ?? 0)
    compareFigure(`refused by ${guard}`, sum(refused[guard]), measured, count)
  }
  const last = (given.requests.at(-1) ?? 0) / given.step
  expect(
    `${title}the figure above the chart shows the rate of the last step`,
    Math.abs(Number(shown) - last) < 0.051,
    `shown ${shown} per second, received ${last}`,
  )
}

/** Waits until a full time step of ten seconds has ended, and until the page has loaded the figures of this step. */
async function endOfStep(): Promise<void> {
  await sleep(2 * step - (Date.now() % step) + 1_500)
}

async function countsOf(admin: number): Promise<Counted> {
  const metrics = await scrape(`http://127.0.0.1:${admin}`)
  const refusedBy = (guard: string) =>
    metrics.sum('peage_guard_decisions_total', { guard, decision: 'refuse' })
  const errors = [...metrics.series].filter(([id]) => /^http_requests_total\{.*status="5/.test(id))
  return {
    requests: metrics.sum('http_requests_total'),
    errors: errors.reduce((sum, [, count]) => sum + count, 0),
    refused: { authenticate: refusedBy('authenticate'), free_daily: refusedBy('free_daily') },
  }
}

function routing(port: number): string {
  // The tokens must be valid until the drill ends.
  return `limits: { free_daily: 1 }
auth: { access_token_ttl: 24h }
upstreams:
  service: { targets: ['http://127.0.0.1:${port}'], connections_per_client: 128 }
routes:
  - { path: /public/*, upstream: service, auth: none }
  - { name: bearer, path: /bearer/*, rewrite: /public/*, upstream: service }
  - { name: counted, path: /counted/*, rewrite: /public/*, upstream: service, free_daily: true }
`
}
