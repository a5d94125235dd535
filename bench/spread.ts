// Divides the cost of one row by the cost of another row in each round. Returns the median and the quartiles of these
// ratios.
import type { Measured } from './load.ts'
import type { Round, Slices } from './rounds.ts'

export interface Spread {
  readonly median: number
  readonly lowerQuartile: number
  readonly upperQuartile: number
  /** The number of rounds that have a cost for both rows. */
  readonly pairs: number
}

/** Returns whether a row reached the rate. Otherwise more and more requests waited, so the latency has no meaning. */
export function keepsUp(measured: Measured, rate: number): boolean {
  return requestsPerSecond(measured) >= rate * 0.95
}

/**
 * Compares one row with another row in each round.
 * @param cost returns the cost of a row in a round, or `undefined` to skip the round
 */
export function ratio(
  rounds: readonly Round[],
  name: string,
  against: string,
  cost: (slices: Slices, name: string) => number | undefined,
): Spread {
  const costIn = (round: Round, row: string) => {
    const slices = round[row]
    return slices && cost(slices, row)
  }
  const ratios = rounds.flatMap(round => {
    const one = costIn(round, name)
    const other = costIn(round, against)
    return one === undefined || other === undefined ? [] : [one / other]
  })
  return {
    median: median(ratios),
    lowerQuartile: quantile(ratios, 0.25),
    upperQuartile: quantile(ratios, 0.75),
    pairs: ratios.length,
  }
}

export function perRequest({ cpu, requests }: Measured): number {
  return cpu / requests
}

export function requestsPerSecond({ requests, seconds }: Measured): number {
  return requests / seconds
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}
