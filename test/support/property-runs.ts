// How often a property runs: by default, a quarter of the runs of a full matrix. `PROPERTY_RUNS` sets another share.
import { isFullMatrix } from './services.ts'

const share = Number(process.env.PROPERTY_RUNS ?? (isFullMatrix ? 1 : 0.25))

/** @param whole the number of runs in a full matrix @returns a share of `whole`, but at least 20 or `whole` itself */
export function runs(whole: number): number {
  return Math.max(Math.min(whole, 20), Math.round(whole * share))
}
