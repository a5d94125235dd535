// A load balancer that is missing from `trusted_proxies`: counted at every request, logged once (CONTRACT §3).
import type { Logger } from 'pino'
import type { Counters } from '../../observability/metrics/counters.ts'

/** @returns call it with the peer of each such request */
export function createForwarderNotice(
  counters: Pick<Counters, 'untrustedForwarders'>,
  logger: Logger,
): (peer: string) => void {
  let warned = false
  return peer => {
    counters.untrustedForwarders += 1
    if (warned) return
    warned = true
    logger.warn(
      { peer },
      'X-Forwarded-For from a private address that is not in server.trusted_proxies: its clients share one rate limit',
    )
  }
}
