// Asks a target again and again whether it is well (CONTRACT §2, `health`): any 2xx or 3xx says yes.
import { Client } from 'undici'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { Ejection } from './outlier-ejection.ts'

export interface Health {
  /** True until checks have failed `unhealthy_after` times in a row, and from `healthy_after` good ones on. */
  isGood(): boolean
  stop(): void
}

type Parts = NonNullable<UpstreamConfig['health']> & {
  url: URL
  tls: { ca?: string; servername: string | undefined }
  ejection: Ejection | undefined
  /** 0 to 1. */
  random(): number
}

/** Starts at once, as well until something else is known. */
export function createHealth(parts: Parts): Health {
  const { url, interval, unhealthy_after, healthy_after, ejection, random } = parts
  // Beside the pool: a check must not wait behind requests, nor take a connection from them.
  const client = new Client(url.origin, { pipelining: 1, connect: { timeout: parts.timeout, ...parts.tls } })
  let isGood = true
  let inARow = 0
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  const run = async () => {
    const isWell = await check(client, parts)
    if (isStopped) return
    if (isWell) ejection?.readmit()
    inARow = isWell === isGood ? 0 : inARow + 1
    if (inARow >= (isGood ? unhealthy_after : healthy_after)) {
      isGood = isWell
      inARow = 0
    }
    // Up to a tenth sooner or later, or all replicas would ask at once.
    timer = setTimeout(run, interval * (0.9 + random() * 0.2))
    timer.unref()
  }
  void run()
  return {
    isGood: () => isGood,
    stop() {
      isStopped = true
      clearTimeout(timer)
      void client.destroy()
    },
  }
}

/** On a connection of its own: one that is open already would not tell that no new one is accepted. */
async function check(client: Client, { path, timeout, tls }: Parts): Promise<boolean> {
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
