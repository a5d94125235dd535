// Limits repeated log lines. For each kind of failure, the first line is logged immediately. After that, at most one
// line per minute is logged, with the number of failures.
import type { Clock } from '../clock.ts'

const intervalMs = 60_000

/**
 * Creates a function that limits repeated log lines. Call the function at each failure, with the kind of the failure.
 * There must be few kinds, because each kind is stored.
 * @returns a function. It returns undefined if no line should be logged now. Otherwise, it returns the number of
 *   failures that the line should report, including the current failure.
 */
export function createLogThrottle(clock: Clock): (kind: string) => number | undefined {
  const lines = new Map<string, { atMs: number; unwritten: number }>()
  return kind => {
    const line = lines.get(kind)
    const nowMs = clock.now()
    // If the clock was set back, the next line of this kind is logged at once. Otherwise, no line would be logged until
    // the clock reaches the time of the previous line again.
    if (line !== undefined && nowMs >= line.atMs && nowMs - line.atMs < intervalMs) {
      line.unwritten += 1
      return undefined
    }
    lines.set(kind, { atMs: nowMs, unwritten: 0 })
    return 1 + (line?.unwritten ?? 0)
  }
}
