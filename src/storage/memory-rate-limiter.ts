// Fixed windows in bounded memory: the rate limiter's counters without Redis.
import type { Clock } from '../clock.ts'

export interface MemoryRateLimiter {
  consume(key: string): { allowed: boolean; used: number; resetMs: number }
  refund(key: string): void
}

interface Window {
  used: number
  /** Since the epoch. */
  endsAtMs: number
}

/** Keys in memory per limiter; beyond it the oldest window is dropped. About 20 MB when full. */
const MAX_KEYS = 100_000

/** @param maxKeys for tests */
export function createMemoryRateLimiter(
  { limit, windowMs }: { limit: number; windowMs: number },
  clock: Clock,
  maxKeys = MAX_KEYS,
): MemoryRateLimiter {
  // In creation order, which is also the order of expiry: all windows of a limiter have the same length.
  const windows = new Map<string, Window>()

  function current(key: string): Window {
    const now = clock.now()
    for (const [oldest, { endsAtMs }] of windows) {
      // A clock that was set back must not keep a window open beyond its length.
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
      if (found === undefined) return
      found.used -= 1
      // A window without a count would only take memory, and a flood of them would drop the windows of others.
      if (found.used === 0) windows.delete(key)
    },
  }
}
