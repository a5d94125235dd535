// Fixed windows in memory, bounded: what a limiter counts with where there is no Redis.
import type { Clock } from '../clock.ts'

export interface MemoryRateLimiter {
  consume(key: string): { allowed: boolean; used: number; resetMs: number }
  refund(key: string): void
}

interface Window {
  used: number
  /** Milliseconds since the epoch. */
  endsAtMs: number
}

/** Keys in memory at most, a limiter: past it the oldest window is forgotten. About 20 MB when full. */
const MAX_KEYS = 100_000

/** @param mostKeys for tests */
export function createMemoryRateLimiter(
  { limit, windowMs }: { limit: number; windowMs: number },
  clock: Clock,
  maxKeys = MAX_KEYS,
): MemoryRateLimiter {
  // In the order of their making, which is that of their ending: all windows of one limiter are equally long.
  const windows = new Map<string, Window>()

  function current(key: string): Window {
    const now = clock.now()
    for (const [oldest, { endsAtMs }] of windows) {
      // A clock that was set back must not leave a window open for longer than it is long.
      if (endsAtMs > now && endsAtMs <= now + windowMs) break
      windows.delete(oldest)
    }
    const existing = windows.get(key)
    if (existing !== undefined) return existing
    if (windows.size >= maxKeys) {
      const oldest = windows.keys().next()
      if (!oldest.done) windows.delete(oldest.value)
    }
    const created = { used: 0, endsAtMs: now + windowMs }
    windows.set(key, created)
    return created
  }

  return {
    consume(key) {
      const found = current(key)
      const allowed = found.used < limit
      if (allowed) found.used += 1
      return { allowed, used: found.used, resetMs: found.endsAtMs - clock.now() }
    },
    refund(key) {
      const found = windows.get(key)
      if (found !== undefined && found.used > 0) found.used -= 1
    },
  }
}
