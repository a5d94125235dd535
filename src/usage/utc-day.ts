// The UTC calendar day, by which free use is counted (spec §8).

const DAY = 86_400_000

let number = Number.NaN
let text = ''

/** @param now milliseconds since the epoch; returns `YYYY-MM-DD` */
export function utcDay(now: number): string {
  const day = Math.floor(now / DAY)
  // Nearly always the day that was asked for last, and to write it takes longer than to count a use.
  if (day !== number) {
    number = day
    text = new Date(now).toISOString().slice(0, 10)
  }
  return text
}

/** Whole seconds, at least 1, from `now` (milliseconds since the epoch) until the UTC day ends. */
export function secondsToMidnight(now: number): number {
  return Math.max(1, Math.ceil((DAY - (now % DAY)) / 1000))
}

/** The first second, since the epoch, at which `day` has been over for a whole day. */
export function dayAfterEnd(day: string): number {
  return (Date.parse(day) + 2 * DAY) / 1000
}
