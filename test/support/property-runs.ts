// Decides how many times a property test or a race test repeats. The number in a test is for
// the full matrix. In all other runs, it is multiplied by 0.25. `PROPERTY_RUNS` sets another factor.
import { isFullMatrix } from './services.ts'

const share = Number(process.env.PROPERTY_RUNS ?? (isFullMatrix ? 1 : 0.25))

/**
 * @param whole the number of runs in a full matrix
 * @param least the minimum number of runs, for example to try each case
 * @returns `whole` multiplied by the factor. The result is at least `least`, or at least `whole` if `whole` is less
 *   than `least`.
 */
export function runs(whole: number, least = 20): number {
  return Math.max(Math.min(whole, least), Math.round(whole * share))
}
