// Avoids a failing endpoint for a while. If no other endpoint can be used, an ejected endpoint still receives requests.
import type { EndAttempt } from '../failures.ts'

export interface OutlierEjection {
  /** Returns whether requests should currently go to other endpoints. */
  isEjected(): boolean
  /** Call when a request is sent. If the ejection time has passed, this request is the probe. */
  beginAttempt(): EndAttempt
  /** Call when a health check has passed. */
  readmit(): void
}

/** The minimum and maximum time for which an endpoint is avoided. The time doubles with each failed probe. */
const initialEjectionMs = 1_000
const maxEjectionMs = 30_000

/**
 * The endpoint is ejected after this number of attempts in a row without a response. One failed connection ejects it
 * immediately.
 */
const maxConsecutiveSilent = 5

/** @param hasHealthChecks if it returns true, the endpoint stays ejected until a health check or a request succeeds */
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
    // If several requests fail together, only the first of their failures counts.
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
        // One request at a time probes the endpoint. For the other requests, the endpoint stays ejected.
        isProbing = true
        ejectedUntilMs = performance.now() + ejectionMs
      }
      return endAttempt
    },
  }
}
