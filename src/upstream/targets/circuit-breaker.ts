// A target's circuit breaker (CONTRACT §2, `circuit_breaker`): one that fails too often is sent nothing but probes.
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { EndAttempt } from '../failures.ts'
import type { CircuitState } from './target-status.ts'

export interface CircuitBreaker {
  /** Whether a request may be sent: any while closed; while half open, one probe, and another after `open_for`. */
  allows(): boolean
  beginAttempt(): EndAttempt
  /** For operators. */
  state(): CircuitState
}

type Options = NonNullable<UpstreamConfig['circuit_breaker']>

const windowSeconds = 10

export function createCircuitBreaker(options: Options): CircuitBreaker {
  /** Zero while closed. From then on the next request is a probe. */
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
      // This request has found out nothing: the next one becomes the probe.
      openUntilMs = performance.now()
      return
    }
    if (result !== 'answered') return open()
    openUntilMs = 0
    // Counts afresh: the failures that opened it would open it again at the next one.
    beginCounted = countAttempts(options, open)
  }
  return {
    allows,
    beginAttempt() {
      if (openUntilMs === 0) return beginCounted()
      // Admitted while the circuit was closed, and sent all the same: its daily use is already counted.
      if (!allows()) return () => {}
      isProbing = true
      // A probe may be a slow upload: its client must not keep the circuit open for as long as it likes.
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
 * Counts what is sent while the circuit is closed, without an allocation per attempt. A failure that comes after the
 * circuit has opened says nothing: the probe does.
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
