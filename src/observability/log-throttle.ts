// Limits lines that would repeat: of each kind the first is written at once, then at most one a minute with a count.
import type { Clock } from '../clock.ts'

const intervalMs = 60_000

/**
 * @returns to be asked at each failure, by its kind (there must be few): how many failures the line is to tell of, this
 * one included; undefined where none is to be written now
 */
export function createLogThrottle(clock: Clock): (kind: string) => number | undefined {
  const lines = new Map<string, { atMs: number; unwritten: number }>()
  return kind => {
    const line = lines.get(kind)
    const nowMs = clock.now()
    // A clock that was set back must not silence a kind until it catches up.
    if (line !== undefined && nowMs >= line.atMs && nowMs - line.atMs < intervalMs) {
      line.unwritten += 1
      return undefined
    }
    lines.set(kind, { atMs: nowMs, unwritten: 0 })
    return 1 + (line?.unwritten ?? 0)
  }
}
