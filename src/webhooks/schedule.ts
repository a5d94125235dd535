// When a delivery that failed is tried again (CONTRACT §5).

/** Milliseconds after the first attempt, the second and so on. */
const delays = [5_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000, 5 * 60 * 60_000]

/**
 * A tenth at most is added at random: receivers that were down together are not all asked again at once.
 * @param attempts that were made
 * @param random 0 to 1
 * @returns milliseconds; nothing where there is no further attempt
 */
export function retryDelay(attempts: number, random: number): number | undefined {
  const delay = delays[attempts - 1]
  return delay === undefined ? undefined : delay * (1 + random / 10)
}
