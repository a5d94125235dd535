// Avoids a target that could not be connected to, for a while: a preference only, never a reason to refuse.
import type { Verdict } from './attempt.ts'

export interface Ejection {
  /** Whether other targets are to be preferred now. */
  isOut(): boolean
  /** A request is sent to it all the same, or its time is over and this is the one that finds out. */
  begin(): void
  end(verdict: Verdict): void
  /** A health check found it well. */
  readmit(): void
}

/** Milliseconds for which it is avoided: the first time, and at most. Doubled each time in between. */
const first = 1_000
const longest = 30_000

/** Tries in a row without an answer that count as much as one without a connection. */
const most = 5

/** @param isChecked health checks look after it: until one of them succeeds, or a request does, it stays out */
export function createEjection(isChecked: boolean): Ejection {
  let until = 0
  let length = 0
  let silent = 0
  let isProbed = false
  const isOut = () => until !== 0 && performance.now() < until
  const readmit = () => {
    until = 0
    length = 0
    silent = 0
    isProbed = false
  }
  return {
    isOut,
    readmit,
    begin() {
      if (until === 0 || isOut()) return
      // One request at a time finds out whether it is back; for the others it is still out.
      isProbed = true
      until = performance.now() + length
    },
    end(verdict) {
      if (verdict === 'answered') {
        if (until !== 0 || silent !== 0) readmit()
        return
      }
      if (verdict === 'left') return
      silent += 1
      if (verdict === 'silent' && silent < most) return
      // Requests that failed together are one failure.
      if (isOut() && !isProbed) return
      isProbed = false
      length = Math.min(length === 0 ? first : length * 2, longest)
      until = isChecked ? Number.POSITIVE_INFINITY : performance.now() + length
    },
  }
}
