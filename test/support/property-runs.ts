// The number of runs of a property: all in a full matrix, otherwise a quarter. `PROPERTY_RUNS` sets another share.
import { isFullMatrix } from './services.ts'

const share = Number(process.env.PROPERTY_RUNS ?? (isFullMatrix ? 1 : 0.25))

/** @param whole the number in a full matrix; mutation testing uses a fiftieth (`PROPERTY_RUNS=0.02`), but at least 20 */
export function runs(whole: number): number {
  return Math.max(Math.min(whole, 20), Math.round(whole * share))
}
