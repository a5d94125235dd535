// The number of runs of a property. `PROPERTY_RUNS` reduces it for many runs in a row.

const share = Number(process.env.PROPERTY_RUNS ?? 1)

/** @param whole the number in the suite; mutation testing uses a fiftieth (`PROPERTY_RUNS=0.02`), but at least 20 */
export function runs(whole: number): number {
  return Math.max(Math.min(whole, 20), Math.round(whole * share))
}
