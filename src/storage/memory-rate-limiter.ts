// Counts requests in fixed windows, with limited memory. The rate limiter uses this if Redis is down or not configured.
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

/**
 * The maximum number of keys per limiter. This number of keys takes about 20 MB. If there are more keys, the limiter
 * drops the oldest window.
 */
const MAX_KEYS = 100_000

/** @param maxKeys replaceable for tests */
export function createMemoryRateLimiter(
  { limit, windowMs }: { limit: number; windowMs: number },
  clock: Clock,
  maxKeys = MAX_KEYS,
): MemoryRateLimiter {
  // The windows in the order of creation. This is also the order of expiry, because all windows of a limiter have the
  // same length.
  const windows = new Map<string, Window>()

  function current(key: string): Window {
    const now = clock.now()
    for (const [oldest, { endsAtMs }] of windows) {
      // If the clock is set back, a window must not stay open beyond its length.
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
      // A window without a count is useless but occupies memory. Many such windows would displace other windows.
      if (found.used === 0) windows.delete(key)
    },
  }
}
