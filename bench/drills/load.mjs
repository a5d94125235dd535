// A light load beside what a drill does: GETs at a fixed rate, with their latency and their failures.
import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * @param {number} port
 * @param {{ perSecond: number, headers?: Record<string, string>, path?: string }} pace
 * @returns {{ done: number, failures: string[], stop(): Promise<{ p50: number, p99: number, worst: number, ownStall: number }> }}
 */
export function startLoad(port, { perSecond, headers = {}, path = '/public/small' }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const latencies = []
  const pending = new Set()
  const load = { done: 0, failures: [], stop }
  const begun = performance.now()
  let sent = 0
  // On a machine that is busy with something else a stall may be ours: it must not pass for the gateway's.
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  const timer = setInterval(() => {
    // By the clock, not by the tick: a late tick must not thin the load out.
    while (sent < ((performance.now() - begun) / 1000) * perSecond) {
      sent += 1
      const one = get(performance.now()).finally(() => pending.delete(one))
      pending.add(one)
    }
  }, 5)

  async function get(at) {
    try {
      const status = await statusOf()
      if (status === 200) load.done += 1
      else load.failures.push(String(status))
    } catch (error) {
      load.failures.push(error.code ?? error.message)
    }
    latencies.push(performance.now() - at)
  }

  function statusOf() {
    return new Promise((resolve, reject) => {
      const sending = request({ host: '127.0.0.1', port, path, headers, agent })
      sending.on('error', reject)
      sending.on('response', answer => {
        answer.on('error', reject).resume()
        answer.on('end', () => resolve(answer.complete ? answer.statusCode : 'broken'))
      })
      sending.end()
    })
  }

  async function stop() {
    clearInterval(timer)
    await Promise.all(pending)
    agent.destroy()
    const sorted = latencies.toSorted((a, b) => a - b)
    const at = share => sorted[Math.floor((sorted.length - 1) * share)] ?? 0
    return { p50: at(0.5), p99: at(0.99), worst: at(1), ownStall: own.max / 1e6 }
  }
  return load
}
