// How often a property is tried: as often as its test says, or a share of that where many runs follow each other.

const share = Number(process.env.PROPERTY_RUNS ?? 1)

/** @param whole in the suite; `PROPERTY_RUNS=0.02` asks for a fiftieth, as mutation testing does; 20 are the least */
export function runs(whole: number): number {
  return Math.max(Math.min(whole, 20), Math.round(whole * share))
}
