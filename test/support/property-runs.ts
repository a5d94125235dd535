// Decides how often a property or a race runs. The share of its runs is 1 in a full matrix, and a quarter otherwise.
// `PROPERTY_RUNS` sets another share.
import { isFullMatrix } from './services.ts'

const share = Number(process.env.PROPERTY_RUNS ?? (isFullMatrix ? 1 : 0.25))

/**
 * @param whole the number of runs in a full matrix
 * @param least the number of runs that are always needed, for example to try each case
 * @returns the share of `whole`; at least `least`, or `whole` if it is smaller than `least`
 */
export function runs(whole: number, least = 20): number {
  return Math.max(Math.min(whole, least), Math.round(whole * share))
}
