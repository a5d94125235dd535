// Kept connections end after `connection_age`, under load and without an error, at a cost that is told.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../costs.mjs'
import { startLoad } from './load.mjs'
import { setting } from './settings.mjs'
import { startStage } from './stage.mjs'

const perSecond = 500
const seconds = setting('AGE_SECONDS', 60, 10)
const ageSeconds = 5
/** `connection_age` and its jitter of a tenth. */
const mostSeconds = ageSeconds * 1.1

/** @type {import('./main.mjs').Drill} */
export async function connectionAge({ say, expect }) {
  const without = await run(0)
  const aged = await run(ageSeconds)
  expect(
    `no connection takes a request after ${mostSeconds} s`,
    aged.oldestMs <= mostSeconds * 1_000,
    `the oldest was ${(aged.oldestMs / 1_000).toFixed(2)} s old (without a limit: ${(without.oldestMs / 1_000).toFixed(0)} s); ${aged.connections} connections for ${aged.done} requests`,
  )
  expect(
    'no request fails',
    aged.failures.length === 0,
    `${aged.failures.length}: ${[...new Set(aged.failures)]}`,
  )
  say(
    `CPU of the gateway: ${perRequest(aged)} µs a request, ${perRequest(without)} without a limit; p99 ${aged.p99.toFixed(1)} and ${without.p99.toFixed(1)} ms`,
  )
}

const perRequest = ({ cpu, done }) => ((cpu / done) * 1e6).toFixed(0)

async function run(age) {
  const opened = new WeakMap()
  let connections = 0
  let oldestMs = 0
  const upstream = createServer((request, response) => {
    oldestMs = Math.max(oldestMs, performance.now() - opened.get(request.socket))
    response.end(Buffer.alloc(1024, 'x'))
  })
  upstream.on('connection', socket => {
    connections += 1
    opened.set(socket, performance.now())
  })
  upstream.keepAliveTimeout = 600_000
  await new Promise(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://127.0.0.1:${upstream.address().port}`],
    upstream: `, connection_age: ${age === 0 ? 0 : `${age}s`}`,
  })
  try {
    const [port = 0] = stage.gateway.ports
    const warm = startLoad(port, { perSecond })
    await sleep(3_000)
    await warm.stop()
    const before = cpuSeconds(stage.gateway.pids)
    const load = startLoad(port, { perSecond })
    await sleep(seconds * 1_000)
    const { p99 } = await load.stop()
    const cpu = cpuSeconds(stage.gateway.pids) - before
    return { oldestMs, connections, cpu, p99, done: load.done, failures: load.failures }
  } finally {
    await stage.stop()
    upstream.closeAllConnections()
    upstream.close()
  }
}
