// Checks a target's health at intervals (CONTRACT §2, `health`): any 2xx or 3xx passes.
import { Client } from 'undici'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { OutlierEjection } from './outlier-ejection.ts'

interface HealthCheck {
  /** True until `unhealthy_after` checks in a row have failed, then again after `healthy_after` passed in a row. */
  isPassing(): boolean
  stop(): void
}

type Options = NonNullable<UpstreamConfig['health']> & {
  url: URL
  tls: { ca?: string; servername: string | undefined }
  ejection: OutlierEjection | undefined
  /** 0 to 1. */
  random(): number
}

/** Starts checking immediately; the target counts as healthy until checks have failed. */
export function createHealthCheck(options: Options): HealthCheck {
  const { url, interval, unhealthy_after, healthy_after, ejection, random } = options
  // Outside the pool: a check must not wait behind requests, nor take a connection from them.
  const client = new Client(url.origin, {
    pipelining: 1,
    connect: { timeout: options.timeout, ...options.tls },
  })
  let isPassing = true
  let consecutiveResults = 0
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  const run = async () => {
    const hasPassed = await check(client, options)
    if (isStopped) return
    if (hasPassed) ejection?.readmit()
    consecutiveResults = hasPassed === isPassing ? 0 : consecutiveResults + 1
    if (consecutiveResults >= (isPassing ? unhealthy_after : healthy_after)) {
      isPassing = hasPassed
      consecutiveResults = 0
    }
    // Up to a tenth sooner or later, or all replicas would check at once.
    timer = setTimeout(run, interval * (0.9 + random() * 0.2))
    timer.unref()
  }
  void run()
  return {
    isPassing: () => isPassing,
    stop() {
      isStopped = true
      clearTimeout(timer)
      void client.destroy()
    },
  }
}

/** Opens a new connection: one already open would not reveal that the target accepts no new ones. */
async function check(client: Client, { path, timeout, tls }: Options): Promise<boolean> {
  try {
    const { statusCode, body } = await client.request({
      method: 'GET',
      path,
      headers: { 'user-agent': 'peage' },
      reset: true,
      servername: tls.servername,
      signal: AbortSignal.timeout(timeout),
    } as Parameters<Client['request']>[0])
    await body.dump()
    return statusCode >= 200 && statusCode < 400
  } catch {
    return false
  }
}
