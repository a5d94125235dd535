// When a delivery that failed is tried again (CONTRACT §5).

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Milliseconds after the first attempt, the second and so on: about three days, as Standard Webhooks recommends. */
const delays = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

/**
 * Each delay is a tenth longer or shorter at random: receivers that were down together are not all asked again at once.
 * @param attempts that were made
 * @param random 0 to 1
 * @param asked milliseconds for which the receiver asked us to wait: they count where they are more
 * @returns milliseconds; nothing where there is no further attempt
 */
export function retryDelay(attempts: number, random: number, asked: number): number | undefined {
  const delay = delays[attempts - 1]
  if (delay === undefined) return undefined
  return Math.max(Math.round(delay * (1 + (random - 0.5) / 5)), asked)
}
