// Calculates the delay before the next attempt.

/**
 * Returns the delay before the next attempt. Each delay is varied at random by up to 10 %, so that attempts that failed
 * together are not retried together.
 * @param delaysMs the delays after the first attempt, after the second attempt, and so on
 * @param attempts the number of attempts so far
 * @param random a random number from 0 to 1
 * @param atLeastMs the delay that the receiver requested; it is used if it is longer than the calculated delay
 * @returns the delay in milliseconds; undefined if no attempt is left
 */
export function retryDelayMs(
  delaysMs: readonly number[],
  attempts: number,
  random: number,
  atLeastMs = 0,
): number | undefined {
  const delayMs = delaysMs[attempts - 1]
  if (delayMs === undefined) return undefined
  return Math.max(Math.round(delayMs * (1 + (random - 0.5) / 5)), atLeastMs)
}
