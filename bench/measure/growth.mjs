// How cost grows: a request's CPU with the number of routes, memory with idle connections and WebSockets.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentOf } from '../drills/memory.mjs'
import { startProgram, temporaryFolder } from '../processes.mjs'
import { quantile } from '../report.mjs'
import { startLoad } from '../rounds.mjs'
import { openServices } from '../services.mjs'
import { openIdle } from './idle.mjs'

const rounds = Number(process.env.GROWTH_ROUNDS ?? 9)
/** Of a process each: what one process takes changes by a tenth from start to start. */
const idleRounds = 5
const routeCounts = [10, 1_000, 10_000]
/** A WebSocket takes two descriptors of a proxy. @type {readonly (readonly ['connection' | 'WebSocket', number])[]} */
const idleKinds = [
  ['connection', 10_000],
  ['WebSocket', 5_000],
]
const collects = { NODE_OPTIONS: `--import=${new URL('../drills/heap-on-signal.mjs', import.meta.url).href}` }

/** @type {import('./main.mjs').Part} */
export async function growth({ say, table }) {
  const services = await openServices()
  if (services === undefined) throw new Error('this needs a Postgres and a Redis')
  const upstream = await startProgram('measure/serve-sockets.mjs')
  if (rounds > 0) table(['routes', 'CPU µs for a request', 'against 10'], await routes(services, upstream))
  say(`\nRoutes: medians of ${rounds} rounds; the route in the middle is asked for, over 48 connections.\n`)
  table(['idle', 'how many', 'KiB each, gateway', 'bare http-proxy', 'ratio'], await idle(services, upstream))
  say(
    `\nResident memory, after a collection, over what it was with 200 that came and went: medians of ${idleRounds} processes of each.`,
  )
}

async function routes(services, upstream) {
  const load = startLoad()
  const gateways = []
  for (const count of routeCounts) {
    const names = Array.from({ length: count }, (_, at) => `/service-${at}/*`)
    const running = await startGateway(services, upstream, names)
    gateways.push({ count, running, costs: /** @type {number[]} */ ([]) })
  }
  // One more, in which code is compiled.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { count, running, costs } of round % 2 ? [...gateways].reverse() : gateways) {
      const { cpu, requests } = await load.run({
        ...running,
        questions: [{ path: `/service-${count / 2}/courses/42`, headers: {} }],
        status: 200,
        connections: 48,
        warmUp: round === 0 ? 0 : 1_000,
        time: 2_000,
      })
      if (round > 0) costs.push((cpu / requests) * 1e6)
    }
  }
  await load.stop()
  const base = gateways[0]?.costs ?? []
  const rows = gateways.map(({ count, costs }) => [
    String(count),
    quantile(costs, 0.5).toFixed(1),
    quantile(
      costs.map((cost, at) => cost / (base[at] ?? Number.NaN)),
      0.5,
    ).toFixed(3),
  ])
  for (const { running } of gateways) await running.stop()
  return rows
}

async function idle(services, upstream) {
  const rows = []
  for (const [kind, count] of idleKinds) {
    const own = []
    const its = []
    for (let round = 0; round < idleRounds; round += 1) {
      const gateway = await startGateway(services, upstream, ['/service/*'])
      own.push(await kibOfEach(gateway, kind, count))
      await gateway.stop()
      const bare = await startProgram('measure/serve-socket-proxy.mjs', [String(upstream.port)], collecting())
      its.push(await kibOfEach(bare, kind, count))
      await bare.stop()
    }
    const ratio = quantile(own, 0.5) / quantile(its, 0.5)
    rows.push([kind, count, told(own), told(its), ratio.toFixed(2)])
  }
  return rows
}

/** The median, and the least and the most. @param {number[]} values */
function told(values) {
  const [least, median, most] = [0, 0.5, 1].map(share => quantile(values, share).toFixed(1))
  return `${median} [${least}–${most}]`
}

/** @param {import('../processes.mjs').Running} running */
async function kibOfEach({ port, pids: [pid = 0] }, kind, count) {
  const path = '/service/courses/42'
  // Code is compiled, and pools have their size.
  const first = await openIdle(port, path, kind, 200)
  first.close()
  await sleep(1_000)
  const before = await collected(pid)
  const sockets = await openIdle(port, path, kind, count)
  const after = await collected(pid)
  sockets.close()
  return ((after - before) * 1024) / count
}

/** MiB. */
async function collected(pid) {
  for (let time = 0; time < 2; time += 1) {
    process.kill(pid, 'SIGUSR2')
    await sleep(1_500)
  }
  return residentOf(pid)
}

function collecting() {
  const { path } = temporaryFolder()
  return { ...collects, HEAP_FILE: join(path, 'heap') }
}

/** @param {readonly string[]} paths of its routes */
async function startGateway(services, upstream, paths) {
  const folder = temporaryFolder()
  const file = join(folder.path, 'gateway.yaml')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0', timeouts: { keep_alive: 10m } }
storage:
  postgres: ${JSON.stringify(await services.createDatabase())}
  redis: ${JSON.stringify(await services.createRedis())}
upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
${paths.map(path => `  - { path: '${path}', upstream: service, auth: none, websocket: true }\n`).join('')}`,
  )
  // As the image and the systemd unit start it.
  const env = { ...collecting(), MALLOC_MMAP_THRESHOLD_: '1048576' }
  return startProgram('../dist/cli.js', ['start', '-c', file], env)
}
