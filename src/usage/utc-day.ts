// The UTC calendar day, by which free use is counted (spec §8).

const DAY_MS = 86_400_000

/** @param nowMs since the epoch @returns `YYYY-MM-DD` */
export function utcDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10)
}

/** Whole seconds, at least 1, from `nowMs` (since the epoch) until the UTC day ends. */
export function secondsToMidnight(nowMs: number): number {
  return Math.max(1, Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1000))
}

/** When the UTC day of `nowMs` (since the epoch) ends. */
export function nextMidnight(nowMs: number): Date {
  return new Date((Math.floor(nowMs / DAY_MS) + 1) * DAY_MS)
}

/** In seconds since the epoch: the moment when `day` has been over for a whole day. */
export function dayAfterEndSeconds(day: string): number {
  return (Date.parse(day) + 2 * DAY_MS) / 1000
}
