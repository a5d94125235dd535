// The configuration changes twice a second under load, on one process and on two workers: nobody notices, and nothing stays behind.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'
import { startReloadLoad } from './reload-load.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { newPro } from './subjects.mjs'

/** Milliseconds: between two reloads, and for how long they come under load. */
const interval = 500
const duration = setting('RELOAD_SECONDS', 60, 5) * 1_000

/** Reloads one after the other without load, after which the heap is what it was. */
const inARow = setting('RELOAD_TIMES', 2_000, 100)

const hook = fileURLToPath(new URL('heap-on-signal.mjs', import.meta.url))

/** @type {import('./main.mjs').Drill} */
export async function reload({ say, expect }) {
  for (const workers of [1, 2]) await withWorkers(workers, { say, expect })
}

async function withWorkers(workers, { say, expect }) {
  const told = `${workers === 1 ? 'one process' : `${workers} workers`}:`
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    const heapFile = join(stage.folder, 'heap')
    const gateway = await stage.start({
      server: `, workers: ${workers}`,
      routing: routing(upstream.port, 0),
      env: { NODE_OPTIONS: `--import ${hook}`, HEAP_FILE: heapFile },
    })
    const [before = ''] = readFileSync(stage.file, 'utf8').split('limits:')
    const primary = /** @type {number} */ (gateway.pids[0])
    let turn = 0
    const change = () => {
      turn += 1
      writeFileSync(`${stage.file}.new`, before + routing(upstream.port, turn))
      renameSync(`${stage.file}.new`, stage.file)
      process.kill(primary, 'SIGHUP')
    }
    const callers = await prepare(gateway.port, stage.database)
    const heaps = () => heapsOf(gateway.pids, heapFile)

    // Until the code is compiled and the memory has its working size.
    await inTurn(100, gateway.admin, change)
    const beforeLoad = await heaps()
    const load = startReloadLoad(gateway.port, callers)
    await sleep(1_000)
    const taken = await reloadsOf(gateway.admin)
    const changed = turn
    const end = performance.now() + duration
    for (let next = performance.now(); performance.now() < end; next += interval) {
      change()
      await sleep(Math.max(0, next + interval - performance.now()))
    }
    await sleep(2_500)
    const after = await reloadsOf(gateway.admin)
    const { ownStall } = await load.stop()
    const { requests, streams, webSockets, messages } = load.seen
    say(
      `${told} ${turn - changed} changes, ${after.success - taken.success} reloads; ${requests} requests, ` +
        `${streams} streams of 2 s, ${webSockets} WebSockets with ${messages} messages; the clients stood still for ${ownStall.toFixed(0)} ms at most`,
    )
    expect(`${told} no request fails`, load.failed.length === 0, some(load.failed))
    expect(`${told} no stream breaks`, load.broken.length === 0, some(load.broken))
    expect(
      `${told} every reload is taken`,
      after.failure === 0 && after.success - taken.success >= 0.8 * (turn - changed),
      `${after.success - taken.success} of ${turn - changed}, ${after.failure} refused`,
    )

    await inTurn(1, gateway.admin, change)
    const afterLoad = await heaps()
    const resident = gateway.pids.map(residentOf)
    await inTurn(inARow, gateway.admin, change)
    const last = await heaps()
    gateway.pids.forEach((pid, i) => {
      const [a, b, c] = [beforeLoad, afterLoad, last].map(all => (all[i]?.heapUsed ?? 0) / MiB)
      const timers = [beforeLoad, afterLoad, last].map(all => all[i]?.counts.Timeout ?? 0)
      const name = `${told} process ${i}`
      say(
        `${name}: resident ${resident[i]?.toFixed(0)} MiB after the load, ${residentOf(pid).toFixed(0)} MiB after ${inARow} reloads more; timers ${timers}`,
      )
      expect(
        `${name}: nothing of ${inARow} reloads stays in the heap`,
        c - b < 4,
        `${a.toFixed(1)} MiB before, ${b.toFixed(1)} MiB after the load, ${c.toFixed(1)} MiB in the end`,
      )
      expect(
        `${name}: no timer stays`,
        timers[2] <= timers[0] + 2,
        `${timers[0]} before, ${timers[2]} in the end`,
      )
    })
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** A pro user, and a free one whose day is spent. */
export async function prepare(port, database) {
  const pro = await newPro(port, database, 'pro')
  const free = await newPro(port, database, 'free')
  await database.query(
    `update users set plan = 'free', daily_usage = 100, last_usage_date = (now() at time zone 'utc')::date where id = $1`,
    [free.id],
  )
  await sleep(500)
  return { bearer: pro.headers, spent: free.headers }
}

/** Another one each time: in its routes, in how an upstream is spoken to, in what a day is worth. */
export function routing(port, turn) {
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

/** So many changes, each when the one before is in force. */
async function inTurn(times, admin, change) {
  for (let i = 0; i < times; i += 1) {
    const { success } = await reloadsOf(admin)
    change()
    const late = performance.now() + 30_000
    while ((await reloadsOf(admin)).success === success) {
      if (performance.now() > late) throw new Error('a reload was not taken within 30 s')
      await sleep(2)
    }
  }
}

async function reloadsOf(admin) {
  const page = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
  const of = result =>
    Number(new RegExp(`^peage_config_reloads_total{result="${result}"} (\\d+)`, 'm').exec(page)?.[1])
  return { success: of('success'), failure: of('failure') }
}

/** What is left in each process when its garbage is collected. */
export async function heapsOf(pids, file) {
  const heaps = []
  for (const pid of pids) {
    writeFileSync(`${file}.${pid}`, '')
    process.kill(pid, 'SIGUSR2')
    let text = ''
    while (text === '') {
      await sleep(50)
      text = readFileSync(`${file}.${pid}`, 'utf8')
    }
    heaps.push(JSON.parse(text))
  }
  return heaps
}

function some(all) {
  return all.length === 0 ? 'none' : `${all.length}: ${[...new Set(all)].slice(0, 5).join('; ')}`
}
