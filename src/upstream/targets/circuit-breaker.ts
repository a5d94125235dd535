// A target's circuit breaker (CONTRACT §2, `circuit_breaker`): opossum counts and times, what is tried is ours.
import Opossum from 'opossum'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { AttemptResult, EndAttempt } from './attempt.ts'
import type { CircuitState } from './target-status.ts'

export interface CircuitBreaker {
  /** Whether a request may be sent: any while it is closed, one at a time to find out whether it may close. */
  allows(): boolean
  beginAttempt(): EndAttempt
  /** For operators. */
  state(): CircuitState
  close(): void
}

/** Milliseconds over which failures are counted. */
const failureWindowMs = 10_000

type Breaker = Opossum<[(endAttempt: EndAttempt) => void], void>

export function createCircuitBreaker(config: NonNullable<UpstreamConfig['circuit_breaker']>): CircuitBreaker {
  const { failures, of_at_least, open_for } = config
  const build = (): Breaker =>
    new Opossum(promiseOfAttempt, {
      // What takes too long is the exchange's to say.
      timeout: false,
      // opossum opens above its threshold, and at 100 would never.
      errorThresholdPercentage: failures - 1e-6,
      volumeThreshold: of_at_least,
      resetTimeout: open_for,
      rollingCountTimeout: failureWindowMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
    })
  let breaker = build()
  let isProbing = false
  /**
   * Half open, opossum waits for the outcome of its one call, which a client that leaves would keep from it. So that
   * try is held here: whoever leaves makes room for the next.
   */
  const probe = (): EndAttempt => {
    isProbing = true
    return result => {
      isProbing = false
      if (!breaker.halfOpen || result === 'client_gone') return
      if (result !== 'answered') {
        breaker.open()
        return
      }
      breaker.shutdown()
      // A new one: the failures that opened the last would open it again at the first that follows.
      breaker = build()
    }
  }
  return {
    allows: () => breaker.closed || (breaker.halfOpen && !isProbing),
    beginAttempt() {
      if (breaker.halfOpen && !isProbing) return probe()
      // Admitted while it was closed, and sent all the same: its use is spent.
      if (!breaker.closed) return () => {}
      let endAttempt: EndAttempt = () => {}
      breaker
        .fire(callback => {
          endAttempt = callback
        })
        .catch(() => {})
      return result => endAttempt(result)
    },
    state: () => (breaker.closed ? 'closed' : breaker.halfOpen ? 'half_open' : 'open'),
    close: () => breaker.shutdown(),
  }
}

/** A client that leaves is no failure of the target's. */
function promiseOfAttempt(start: (endAttempt: EndAttempt) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((result: AttemptResult) => {
      if (result === 'answered' || result === 'client_gone') resolve()
      else reject(new Error(result))
    })
  })
}
