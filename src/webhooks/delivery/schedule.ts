// When a delivery that failed is tried again (CONTRACT §5).

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** Milliseconds after the first attempt, the second and so on: about three days, as Standard Webhooks recommends. */
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
 * Each delay is a tenth longer or shorter at random: receivers that were down together are not all asked again at once.
 * @param attempts that were made
 * @param random 0 to 1
 * @param asked milliseconds for which the receiver asked us to wait: they count where they are more
 * @returns milliseconds; nothing where there is no further attempt
 */
export function retryDelayMs(attempts: number, random: number, retryAfterMs: number): number | undefined {
  const delayMs = retryDelaysMs[attempts - 1]
  if (delayMs === undefined) return undefined
  return Math.max(Math.round(delayMs * (1 + (random - 0.5) / 5)), retryAfterMs)
}
