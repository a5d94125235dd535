// Avoids a target that could not be connected to, for a while: a preference only, never a reason to refuse.
import type { AttemptResult } from './attempt.ts'

export interface OutlierEjection {
  /** Whether other targets are to be preferred now. */
  isEjected(): boolean
  /** A request is sent to it all the same, or its time is over and this is the one that finds out. */
  beginAttempt(): void
  endAttempt(result: AttemptResult): void
  /** A health check found it well. */
  readmit(): void
}

/** Milliseconds for which it is avoided: the first time, and at most. Doubled each time in between. */
const initialEjectionMs = 1_000
const maxEjectionMs = 30_000

/** Tries in a row without an answer that count as much as one without a connection. */
const maxConsecutiveSilent = 5

/** @param isChecked health checks look after it: until one of them succeeds, or a request does, it stays out */
export function createOutlierEjection(hasHealthChecks: boolean): OutlierEjection {
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
  return {
    isEjected,
    readmit,
    beginAttempt() {
      if (ejectedUntilMs === 0 || isEjected()) return
      // One request at a time finds out whether it is back; for the others it is still out.
      isProbing = true
      ejectedUntilMs = performance.now() + ejectionMs
    },
    endAttempt(result) {
      if (result === 'answered') {
        if (ejectedUntilMs !== 0 || consecutiveSilent !== 0) readmit()
        return
      }
      if (result === 'client_gone') return
      consecutiveSilent += 1
      if (result === 'silent' && consecutiveSilent < maxConsecutiveSilent) return
      // Requests that failed together are one failure.
      if (isEjected() && !isProbing) return
      isProbing = false
      ejectionMs = Math.min(ejectionMs === 0 ? initialEjectionMs : ejectionMs * 2, maxEjectionMs)
      ejectedUntilMs = hasHealthChecks ? Number.POSITIVE_INFINITY : performance.now() + ejectionMs
    },
  }
}
