// Decides how often a property runs. The share of its runs is 1 in a full matrix, and a quarter otherwise.
// `PROPERTY_RUNS` sets another share.
import { isFullMatrix } from './services.ts'

const share = Number(process.env.PROPERTY_RUNS ?? (isFullMatrix ? 1 : 0.25))

/**
 * @param whole the number of runs in a full matrix
 * @returns the share of `whole`; at least 20, or `whole` if it is smaller than 20
 */
export function runs(whole: number): number {
  return Math.max(Math.min(whole, 20), Math.round(whole * share))
}
