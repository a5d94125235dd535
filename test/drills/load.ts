// Sends a light load during a drill: GETs at a fixed rate. Measures latencies and records failures.
import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { codeOf } from './error-code.ts'

/** Latencies in milliseconds. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly worst: number
  /**
   * The longest time in milliseconds for which the process that sends the load was blocked. A delay of up to this
   * length can come from this process instead of the gateway.
   */
  readonly ownStall: number
}

export interface Load {
  /** The number of requests that got a 200. */
  readonly done: number
  /** The status code, error code or error message of each other request. */
  readonly failures: readonly string[]
  stop(): Promise<Latencies>
}

interface LoadOptions {
  readonly perSecond: number
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
}

export function startLoad(
  port: number,
  { perSecond, headers = {}, path = '/public/small' }: LoadOptions,
): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const latencies: number[] = []
  const pending = new Set<Promise<void>>()
  const failures: string[] = []
  const load = { done: 0, failures, stop }
  const begun = performance.now()
  let sent = 0
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  const timer = setInterval(() => {
    // The number of requests to send is computed from the clock. So a late timer does not lower the rate.
    while (sent < ((performance.now() - begun) / 1000) * perSecond) {
      sent += 1
      const one: Promise<void> = get(performance.now()).finally(() => pending.delete(one))
      pending.add(one)
    }
  }, 5)

  async function get(at: number): Promise<void> {
    try {
      const status = await statusOf()
      if (status === '200') load.done += 1
      else failures.push(status)
    } catch (error) {
      failures.push(codeOf(error))
    }
    latencies.push(performance.now() - at)
  }

  function statusOf(): Promise<string> {
    return new Promise((resolve, reject) => {
      const sending = request({ host: '127.0.0.1', port, path, headers, agent })
      sending.on('error', reject)
      sending.on('response', answer => {
        answer.on('error', reject).resume()
        answer.on('end', () => resolve(answer.complete ? String(answer.statusCode) : 'broken'))
      })
      sending.end()
    })
  }

  async function stop(): Promise<Latencies> {
    clearInterval(timer)
    await Promise.all(pending)
    agent.destroy()
    const sorted = latencies.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0
    return { p50: at(0.5), p99: at(0.99), worst: at(1), ownStall: own.max / 1e6 }
  }
  return load
}
