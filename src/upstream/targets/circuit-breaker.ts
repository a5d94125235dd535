// A target's circuit breaker (CONTRACT §2, `circuit_breaker`): opossum counts and times, what is tried is ours.
import CircuitBreaker from 'opossum'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { Try, Verdict } from './attempt.ts'
import type { CircuitState } from './target-status.ts'

export interface Circuit {
  /** Whether a request may be sent: any while it is closed, one at a time to find out whether it may close. */
  allows(): boolean
  begin(): Try
  /** For operators. */
  state(): CircuitState
  close(): void
}

/** Milliseconds over which failures are counted. */
const windowLength = 10_000

type Breaker = CircuitBreaker<[(settle: Try) => void], void>

export function createCircuit(config: NonNullable<UpstreamConfig['circuit_breaker']>): Circuit {
  const { failures, of_at_least, open_for } = config
  const build = (): Breaker =>
    new CircuitBreaker(outcomeOf, {
      // What takes too long is the exchange's to say.
      timeout: false,
      // opossum opens above its threshold, and at 100 would never.
      errorThresholdPercentage: failures - 1e-6,
      volumeThreshold: of_at_least,
      resetTimeout: open_for,
      rollingCountTimeout: windowLength,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
    })
  let breaker = build()
  let isTrying = false
  /**
   * Half open, opossum waits for the outcome of its one call, which a client that leaves would keep from it. So that
   * try is held here: whoever leaves makes room for the next.
   */
  const trial = (): Try => {
    isTrying = true
    return verdict => {
      isTrying = false
      if (!breaker.halfOpen || verdict === 'left') return
      if (verdict !== 'answered') {
        breaker.open()
        return
      }
      breaker.shutdown()
      // A new one: the failures that opened the last would open it again at the first that follows.
      breaker = build()
    }
  }
  return {
    allows: () => breaker.closed || (breaker.halfOpen && !isTrying),
    begin() {
      if (breaker.halfOpen && !isTrying) return trial()
      // Admitted while it was closed, and sent all the same: its use is spent.
      if (!breaker.closed) return () => {}
      let settle: Try = () => {}
      breaker
        .fire(given => {
          settle = given
        })
        .catch(() => {})
      return verdict => settle(verdict)
    },
    state: () => (breaker.closed ? 'closed' : breaker.halfOpen ? 'half_open' : 'open'),
    close: () => breaker.shutdown(),
  }
}

/** A client that leaves is no failure of the target's. */
function outcomeOf(start: (settle: Try) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((verdict: Verdict) => {
      if (verdict === 'answered' || verdict === 'left') resolve()
      else reject(new Error(verdict))
    })
  })
}
