// A target's circuit breaker (CONTRACT §2, `circuit_breaker`): opossum counts and times, the probes are ours.
import Opossum from 'opossum'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { AttemptResult, EndAttempt } from './attempt.ts'
import type { CircuitState } from './target-status.ts'

export interface CircuitBreaker {
  /** Whether a request may be sent: any while closed; while half open, one probe at a time. */
  allows(): boolean
  beginAttempt(): EndAttempt
  /** For operators. */
  state(): CircuitState
  close(): void
}

const failureWindowMs = 10_000

type Breaker = Opossum<[(endAttempt: EndAttempt) => void], void>

export function createCircuitBreaker(config: NonNullable<UpstreamConfig['circuit_breaker']>): CircuitBreaker {
  const { failures, of_at_least, open_for } = config
  const build = (): Breaker =>
    new Opossum(promiseOfAttempt, {
      // Timeouts are detected while forwarding, not here.
      timeout: false,
      // opossum opens only above its threshold: at 100 it would never open.
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
   * While half open, opossum waits for the result of its single call, and a client that disconnects would withhold
   * it. So the probe is tracked here: if its client disconnects, the next request becomes the probe.
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
      // A new breaker: in the old one the failures that opened it would open it again at the next failure.
      breaker = build()
    }
  }
  return {
    allows: () => breaker.closed || (breaker.halfOpen && !isProbing),
    beginAttempt() {
      if (breaker.halfOpen && !isProbing) return probe()
      // Admitted while the circuit was closed, and sent all the same: its daily use is already counted.
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

/** A client that disconnects is no failure of the target. */
function promiseOfAttempt(start: (endAttempt: EndAttempt) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((result: AttemptResult) => {
      if (result === 'answered' || result === 'client_gone') resolve()
      else reject(new Error(result))
    })
  })
}
