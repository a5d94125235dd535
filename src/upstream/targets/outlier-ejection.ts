// Avoids a failing endpoint for a while: a preference only, never a reason to refuse.
import type { EndAttempt } from '../failures.ts'

export interface OutlierEjection {
  /** Whether other targets are preferred now. */
  isEjected(): boolean
  /** A request is sent to the target all the same, or its ejection is over and this request is the probe. */
  beginAttempt(): EndAttempt
  /** A health check has passed. */
  readmit(): void
}

/** How long a target is avoided: the first time, and at most. Doubled each time in between. */
const initialEjectionMs = 1_000
const maxEjectionMs = 30_000

/** Attempts in a row without a response that count as much as one without a connection. */
const maxConsecutiveSilent = 5

/** @param hasHealthChecks the endpoint then stays ejected until a health check or a request succeeds */
export function createOutlierEjection(hasHealthChecks: () => boolean): OutlierEjection {
  let ejectedUntilMs = 0
  let ejectionMs = 0
  let consecutiveSilent = 0
  let isProbing = false
  const isEjected = () => ejectedUntilMs !== 0 && performance.now() < ejectedUntilMs
  const readmit = () => {
    ejectedUntilMs = 0
    ejectionMs = 0
    consecutiveSilent = 0
    isProbing = false
  }
  const endAttempt: EndAttempt = result => {
    if (result === 'answered') {
      if (ejectedUntilMs !== 0 || consecutiveSilent !== 0) readmit()
      return
    }
    if (result === 'inconclusive') return
    consecutiveSilent += 1
    if (result === 'silent' && consecutiveSilent < maxConsecutiveSilent) return
    // Requests that failed together count as one failure.
    if (isEjected() && !isProbing) return
    isProbing = false
    ejectionMs = Math.min(ejectionMs === 0 ? initialEjectionMs : ejectionMs * 2, maxEjectionMs)
    ejectedUntilMs = hasHealthChecks() ? Number.POSITIVE_INFINITY : performance.now() + ejectionMs
  }
  return {
    isEjected,
    readmit,
    beginAttempt() {
      if (ejectedUntilMs !== 0 && !isEjected()) {
        // One request at a time probes whether the target is back; for the others it stays ejected.
        isProbing = true
        ejectedUntilMs = performance.now() + ejectionMs
      }
      return endAttempt
    },
  }
}
