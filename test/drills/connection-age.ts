// Under load, connections to the upstream get no new requests after 1.1 times `connection_age`. No request fails. The
// drill also prints how much CPU time this costs.
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../support/process-stat.ts'
import { startLoad } from './load.ts'
import { setting } from './settings.ts'
import { startStage } from './stage.ts'
import type { Watch } from './watch.ts'

const perSecond = 500
const seconds = setting('AGE_SECONDS', 60, 10)
const ageSeconds = 5
/** The maximum age of a connection in seconds. The gateway varies `connection_age` at random, by at most a tenth. */
const mostSeconds = ageSeconds * 1.1

export async function connectionAge({ say, expect }: Watch): Promise<void> {
  const without = await run(0)
  const aged = await run(ageSeconds)
  expect(
    `no connection older than ${mostSeconds} s gets a request`,
    aged.oldestMs <= mostSeconds * 1_000,
    `the oldest had ${(aged.oldestMs / 1_000).toFixed(2)} s (without a limit: ${(without.oldestMs / 1_000).toFixed(0)} s); ${aged.connections} connections for ${aged.done} requests`,
  )
  expect(
    'no request fails',
    aged.failures.length === 0,
    `${aged.failures.length}: ${[...new Set(aged.failures)]}`,
  )
  say(
    `CPU of the gateway: ${aged.cpuMicros} µs per request, ${without.cpuMicros} µs without a limit; p99 ${aged.p99.toFixed(1)} ms and ${without.p99.toFixed(1)} ms`,
  )
}

/** @param age `connection_age` in seconds; 0 for no limit */
async function run(age: number) {
  const opened = new WeakMap<Socket, number>()
  let connections = 0
  let oldestMs = 0
  const upstream = createServer((request, response) => {
    oldestMs = Math.max(oldestMs, performance.now() - (opened.get(request.socket) ?? 0))
    response.end(Buffer.alloc(1024, 'x'))
  })
  upstream.on('connection', socket => {
    connections += 1
    opened.set(socket, performance.now())
  })
  upstream.keepAliveTimeout = 600_000
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`],
    upstream: `, connection_age: ${age === 0 ? 0 : `${age}s`}`,
  })
  try {
    const { port, pids } = stage.gateway
    const warm = startLoad(port, { perSecond })
    await sleep(3_000)
    await warm.stop()
    const before = cpuSeconds(pids)
    const load = startLoad(port, { perSecond })
    await sleep(seconds * 1_000)
    const { p99 } = await load.stop()
    const { done, failures } = load
    const cpuMicros = (((cpuSeconds(pids) - before) / done) * 1e6).toFixed(0)
    return { oldestMs, connections, cpuMicros, p99, done, failures }
  } finally {
    await stage.stop()
    upstream.close().closeAllConnections()
  }
}
