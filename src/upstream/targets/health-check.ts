// Checks the health of an endpoint at intervals. A check passes if the response has a status 2xx or 3xx.
import { type buildConnector, Client } from 'undici'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import { createConnector, type Dial } from './dial.ts'
import type { OutlierEjection } from './outlier-ejection.ts'

/** `unchecked` means that the address was found after the start, and that its first check has not ended. */
export type HealthState = 'passing' | 'failing' | 'unchecked'

export interface HealthCheck {
  /**
   * Returns the state. A passing endpoint changes to failing after `unhealthy_after` failed checks in a row. A failing
   * endpoint changes to passing after `healthy_after` passed checks in a row. For an `unchecked` endpoint, the first
   * check decides.
   */
  state(): HealthState
  /** Returns why the last check failed; undefined if it passed. */
  problem(): string | undefined
  stop(): void
}

type Options = NonNullable<UpstreamConfig['health']> & {
  dial: Dial
  initialState: HealthState
  ejection: OutlierEjection
  /** Returns a random number from 0 to 1. */
  random(): number
}

/** Starts checking immediately. */
export function createHealthCheck(options: Options): HealthCheck {
  const { dial, interval, unhealthy_after, healthy_after, ejection, random } = options
  const connect = createConnector(dial, options.timeout)
  let state = options.initialState
  let consecutiveResults = 0
  let problem: string | undefined
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let cancel = () => {}
  const run = async () => {
    const checking = startCheck(connect, options)
    cancel = checking.cancel
    const found = await checking.problem
    if (isStopped) return
    problem = found
    const result = problem === undefined ? 'passing' : 'failing'
    if (result === 'passing') ejection.readmit()
    consecutiveResults = result === state ? 0 : consecutiveResults + 1
    const needed = { passing: unhealthy_after, failing: healthy_after, unchecked: 1 }[state]
    if (consecutiveResults >= needed) {
      state = result
      consecutiveResults = 0
    }
    // Varies the interval by 10 %, so that replicas do not check at the same time.
    timer = setTimeout(run, interval * (0.9 + random() * 0.2))
    timer.unref()
  }
  void run()
  return {
    state: () => state,
    problem: () => problem,
    stop() {
      isStopped = true
      clearTimeout(timer)
      cancel()
    },
  }
}

interface Check {
  /** Resolves within `timeout`. The value is the reason if the check failed, and undefined if it passed. */
  readonly problem: Promise<string | undefined>
  cancel(): void
}

/**
 * Opens a new connection for each check, because an open connection would not show whether the target accepts new
 * connections. The connection is outside the pool, because a check must not wait behind requests or take a connection
 * from them. Each check has its own client and timeout, because undici 7 never settles a request if the certificate has
 * a wrong name.
 */
function startCheck(connect: buildConnector.connector, { path, timeout, dial }: Options): Check {
  const client = new Client(dial.origin, { pipelining: 1, connect })
  const request = async () => {
    const { statusCode, body } = await client.request({
      method: 'GET',
      path,
      headers: { 'user-agent': 'peage' },
      reset: true,
      servername: dial.serverName,
    } as Parameters<Client['request']>[0])
    await body.dump()
    return statusCode >= 200 && statusCode < 400 ? undefined : `status ${statusCode}`
  }
  let end: (problem: string | undefined) => void = () => {}
  const problem = new Promise<string | undefined>(resolve => {
    end = result => {
      clearTimeout(limit)
      resolve(result)
      void client.destroy()
    }
    const limit = setTimeout(() => end('timeout'), timeout)
    limit.unref()
  })
  client.on('connectionError', (_origin, _clients, error) => end(problemOf(error)))
  request().then(end, error => end(problemOf(error)))
  return { problem, cancel: () => end('cancelled') }
}

/**
 * Describes why a check failed. The text contains nothing that the target sent.
 * @param error an error of undici or `node:net`
 */
function problemOf(error: unknown): string {
  const { name, code } = error as { name?: unknown; code?: unknown }
  if (name === 'TimeoutError') return 'timeout'
  if (typeof code !== 'string') return 'connection failed'
  return `${wordsOf(code)} (${code})`
}

function wordsOf(code: string): string {
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'timeout'
  if (code === 'ECONNREFUSED') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name not found'
  if (/CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ALTNAME|CA_|SIGNATURE/.test(code))
    return 'certificate not accepted'
  if (/SSL|TLS/.test(code) || code === 'EPROTO') return 'TLS failed'
  if (code.startsWith('HPE_')) return 'malformed response'
  return 'connection failed'
}
