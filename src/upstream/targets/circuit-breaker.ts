// Implements the circuit breaker of a target. If too many requests fail, the target receives only probes.
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { EndAttempt } from '../failures.ts'
import type { CircuitState } from './target-status.ts'

export interface CircuitBreaker {
  /**
   * Returns whether a request may be sent. While the circuit is closed, every request may be sent. Otherwise, one probe
   * may be sent per `open_for`.
   */
  allows(): boolean
  beginAttempt(): EndAttempt
  state(): CircuitState
}

type Options = NonNullable<UpstreamConfig['circuit_breaker']>

const windowSeconds = 10

export function createCircuitBreaker(options: Options): CircuitBreaker {
  /** Zero while the circuit is closed. Otherwise, the time from which the next request is a probe. */
  let openUntilMs = 0
  let isProbing = false
  const open = () => {
    openUntilMs = performance.now() + options.open_for
  }
  let beginCounted = countAttempts(options, open)
  const allows = () => openUntilMs === 0 || performance.now() >= openUntilMs
  const endProbe: EndAttempt = result => {
    isProbing = false
    if (result === 'inconclusive') {
      // This probe did not show whether the target is healthy. So the next request becomes the next probe.
      openUntilMs = performance.now()
      return
    }
    if (result !== 'answered') return open()
    openUntilMs = 0
    // Starts a new count. If the old failures still counted, the next failure would open the circuit again.
    beginCounted = countAttempts(options, open)
  }
  return {
    allows,
    beginAttempt() {
      if (openUntilMs === 0) return beginCounted()
      // The request was admitted while the circuit was closed. It is still sent, because its use is already counted.
      if (!allows()) return () => {}
      isProbing = true
      // Another probe is allowed after `open_for`, even if this probe has not ended. This probe may be a slow upload,
      // and its client must not keep the circuit open.
      open()
      return endProbe
    },
    state() {
      if (openUntilMs === 0) return 'closed'
      return !isProbing && performance.now() < openUntilMs ? 'open' : 'half_open'
    },
  }
}

/**
 * Counts attempts while the circuit is closed, without an allocation for each attempt. When the circuit is open,
 * failures of earlier attempts are ignored, because only the probe decides.
 */
function countAttempts({ failures, of_at_least }: Options, open: () => void): () => EndAttempt {
  let seconds: { readonly second: number; sent: number; failed: number }[] = []
  let hasOpened = false

  function thisSecond() {
    const second = Math.floor(performance.now() / 1_000)
    const latest = seconds.at(-1)
    if (latest?.second === second) return latest
    const next = { second, sent: 0, failed: 0 }
    seconds = [...seconds.filter(earlier => earlier.second > second - windowSeconds), next]
    return next
  }

  const endAttempt: EndAttempt = result => {
    if (hasOpened || result === 'answered' || result === 'inconclusive') return
    thisSecond().failed += 1
    const sent = seconds.reduce((sum, second) => sum + second.sent, 0)
    const failed = seconds.reduce((sum, second) => sum + second.failed, 0)
    if (sent < of_at_least || failed * 100 < failures * sent) return
    hasOpened = true
    open()
  }
  return () => {
    thisSecond().sent += 1
    return endAttempt
  }
}
