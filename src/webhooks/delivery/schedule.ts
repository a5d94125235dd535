// When a failed delivery is retried (CONTRACT §5).

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** The delay after the first attempt, the second and so on: about three days, as Standard Webhooks recommends. */
const retryDelaysMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
]

/**
 * Varies each delay by up to a tenth at random: receivers that were down together are not all retried at once.
 * @param attempts made so far
 * @param random from 0 to 1
 * @param retryAfterMs the receiver's Retry-After; it applies if it is longer
 * @returns undefined when no attempt is left
 */
export function retryDelayMs(attempts: number, random: number, retryAfterMs: number): number | undefined {
  const delayMs = retryDelaysMs[attempts - 1]
  if (delayMs === undefined) return undefined
  return Math.max(Math.round(delayMs * (1 + (random - 0.5) / 5)), retryAfterMs)
}
