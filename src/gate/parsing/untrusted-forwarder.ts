// A balancer that is not in `trusted_proxies`: counted at every request, and warned of once (CONTRACT §3).
import type { Logger } from 'pino'
import type { Counters } from '../../observability/metrics/counters.ts'

/** @returns to be told of the peer */
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
