// When a mail that could not be sent is tried again (CONTRACT §12).
import { retryDelayMs } from '../outbox/retry-delay.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** The delay after the first attempt, the second and so on; `expires_at` ends it after a day at the latest. */
const retryDelaysMs = [
  30 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  hourMs,
  ...Array<number>(6).fill(4 * hourMs),
]

/**
 * @param attempts made so far
 * @param random from 0 to 1
 * @returns undefined where the mail is given up: an attempt after `expiresAt` would be one too late
 */
export function nextAttemptAt(
  { attempts, expiresAt, nowMs }: { attempts: number; expiresAt: Date; nowMs: number },
  random: number,
): Date | undefined {
  const delayMs = retryDelayMs(retryDelaysMs, attempts, random)
  if (delayMs === undefined || nowMs + delayMs >= expiresAt.getTime()) return undefined
  return new Date(nowMs + delayMs)
}
