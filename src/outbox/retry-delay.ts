// How long to wait before the next attempt.

/**
 * Varies each delay by up to a tenth at random: what failed together is not all tried again at once.
 * @param delaysMs after the first attempt, the second and so on
 * @param attempts made so far
 * @param random from 0 to 1
 * @param atLeastMs what the receiver asked for; it applies if it is longer
 * @returns milliseconds; undefined when no attempt is left
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
