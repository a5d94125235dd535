// Fixed windows in memory, bounded: what a limiter counts with where there is no Redis.
import type { Clock } from '../clock.ts'

export interface Windows {
  take(key: string): { allowed: boolean; used: number; resetMs: number }
  giveBack(key: string): void
}

interface Window {
  used: number
  /** Milliseconds since the epoch. */
  ends: number
}

/** Keys in memory at most, a limiter: past it the oldest window is forgotten. About 20 MB when full. */
const MOST_KEYS = 100_000

/** @param mostKeys for tests */
export function createMemoryWindows(
  { limit, window }: { limit: number; window: number },
  clock: Clock,
  mostKeys = MOST_KEYS,
): Windows {
  // In the order of their making, which is that of their ending: all windows of one limiter are equally long.
  const windows = new Map<string, Window>()

  function current(key: string): Window {
    const now = clock.now()
    for (const [oldest, { ends }] of windows) {
      // A clock that was set back must not leave a window open for longer than it is long.
      if (ends > now && ends <= now + window) break
      windows.delete(oldest)
    }
    const known = windows.get(key)
    if (known !== undefined) return known
    if (windows.size >= mostKeys) {
      const oldest = windows.keys().next()
      if (!oldest.done) windows.delete(oldest.value)
    }
    const made = { used: 0, ends: now + window }
    windows.set(key, made)
    return made
  }

  return {
    take(key) {
      const found = current(key)
      const allowed = found.used < limit
      if (allowed) found.used += 1
      return { allowed, used: found.used, resetMs: found.ends - clock.now() }
    },
    giveBack(key) {
      const found = windows.get(key)
      if (found !== undefined && found.used > 0) found.used -= 1
    },
  }
}
