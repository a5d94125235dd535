// The console's overview open in a browser for an hour under load, with one and with two workers: nothing grows, and its figures are right.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { costOfOpenConsole } from './console-cost.mjs'
import { startCountedLoad } from './console-load.mjs'
import { openConsole } from './console-tab.mjs'
import { manyUsers } from './console-users.mjs'
import { residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'
import { heapsOf, prepare } from './reload.mjs'
import { adminToken, openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { slopeOf } from './slope.mjs'
import { startUpstream } from './stage.mjs'

const duration = setting('CONSOLE_SECONDS', 3_600, 60) * 1_000
/** Until code is compiled and caches have their working size; the charts fill for the first 15 minutes. */
const warmUp = Math.min(120_000, duration / 3)
const perSecond = setting('CONSOLE_PER_SECOND', 100, 100)
/** Of the figures' comparison, which has to fit in the 15 minutes that the overview shows. */
const counted = setting('CONSOLE_COUNTED_SECONDS', 300, 30) * 1_000
const looks = 12
const step = 10_000
/** How much more there may be at the end than at the beginning, by the line through what was seen. */
const most = { heap: 1, resident: 16, nodes: 60, listeners: 20, gateway: 6 }
const hook = fileURLToPath(new URL('heap-on-signal.mjs', import.meta.url))

/** @type {import('./main.mjs').Drill} */
export async function consoleOpen(watch) {
  const upstream = await startUpstream()
  try {
    await manyUsers(watch)
    await Promise.all([1, 2].map(workers => withWorkers(workers, upstream.port, watch)))
    await costOfOpenConsole(upstream.port, watch)
  } finally {
    await upstream.stop()
  }
}

async function withWorkers(workers, upstream, { say, expect }) {
  const told = `${workers === 1 ? 'one process' : `${workers} workers`}:`
  const stage = await openStage()
  let tab
  try {
    const heapFile = join(stage.folder, 'heap')
    const gateway = await stage.start({
      server: `, workers: ${workers}`,
      routing: routing(upstream),
      env: { NODE_OPTIONS: `--import ${hook}`, HEAP_FILE: heapFile },
    })
    const callers = await prepare(gateway.port, stage.database)
    tab = await openConsole(gateway.admin, adminToken)
    const look = async () => ({
      ...(await tab.memory()),
      gateway: (await heapsOf(gateway.pids, heapFile)).reduce((sum, one) => sum + one.heapUsed / MiB, 0),
    })

    const load = startCountedLoad(gateway.port, callers, perSecond)
    await sleep(warmUp)
    const seen = []
    const begun = performance.now()
    for (let index = 0; index <= looks; index += 1) {
      await sleep(Math.max(0, begun + (index * duration) / looks - performance.now()))
      seen.push({ at: (performance.now() - begun) / duration, ...(await look()) })
    }
    const { requests } = await load.stop()
    expect(
      `${told} no request is answered wrongly`,
      load.wrong.length === 0,
      `${load.wrong.length} of ${requests} ${[...new Set(load.wrong)].slice(0, 5).join('; ')}`.trim(),
    )
    const names = {
      heap: 'heap of the tab after collection, MiB',
      resident: 'resident memory of the tab, MiB',
      nodes: 'elements of the page',
      listeners: 'listeners of the page',
      gateway: 'heaps of the gateway after collection, MiB',
    }
    for (const [key, name] of Object.entries(names)) {
      const values = seen.map(one => one[key])
      const slope = slopeOf(seen.map(one => [one.at, one[key]]))
      expect(
        `${told} ${name}: the slope is flat, less than ${most[key]} more in ${duration / 1_000} s`,
        slope < most[key],
        `${slope.toFixed(2)}; from ${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`,
      )
    }
    say(
      `${told} resident memory of the gateway ${gateway.pids.map(pid => residentOf(pid).toFixed(0)).join(', ')} MiB`,
    )
    await compare(told, gateway, callers, tab, expect)
  } finally {
    await tab?.close()
    await stage.stop()
  }
}

/** What the page was given and shows, beside `/metrics` and the load's own count, of the same requests. */
async function compare(told, gateway, callers, tab, expect) {
  // The last step's requests are in the overview, and the page has it, before the count begins.
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
  const sum = series =>
    series.reduce((total, value, index) => total + (at[index] > from ? (value ?? 0) : 0), 0)
  const figures = { requests: sum(requests), errors: sum(errors) }
  for (const guard of Object.keys(own.refused)) figures[`refused by ${guard}`] = sum(refused[guard] ?? [])
  const owns = { requests: own.requests, errors: own.errors }
  for (const [guard, count] of Object.entries(own.refused)) owns[`refused by ${guard}`] = count
  for (const [name, count] of Object.entries(owns)) {
    const others = [figures[name], after[name] - before[name]]
    expect(
      `${told} ${name}: overview, /metrics and the load's own count are within 1 %`,
      others.every(other => Math.abs(other - count) <= count / 100),
      `${others[0]}, ${others[1]} and ${count}`,
    )
  }
  const last = given.requests.at(-1) / given.step
  expect(
    `${told} what is written above the chart is the rate of the last step`,
    Math.abs(Number(shown) - last) < 0.051,
    `${shown} a second, of ${last} given`,
  )
}

/** A step ends at each multiple of ten seconds; the page asks every ten. */
async function endOfStep() {
  await sleep(2 * step - (Date.now() % step) + 1_500)
}

async function countsOf(admin) {
  const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
  const counts = { requests: 0, errors: 0 }
  for (const [, name, labels = '', value] of text.matchAll(/^(\w+)\{(.*)\} (\d+)$/gm)) {
    if (name === 'http_requests_total') {
      counts.requests += Number(value)
      if (/status="5/.test(labels)) counts.errors += Number(value)
    }
    const [, guard] = /guard="(\w+)"/.exec(labels) ?? []
    if (name === 'peage_guard_decisions_total' && labels.includes('decision="refuse"'))
      counts[`refused by ${guard}`] = (counts[`refused by ${guard}`] ?? 0) + Number(value)
  }
  return counts
}

function routing(port) {
  // Tokens that are good until the drill ends.
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
