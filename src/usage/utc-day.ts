// Computes UTC calendar days. Free uses are counted per UTC day.

const DAY_MS = 86_400_000

/** @param nowMs milliseconds since the epoch @returns `YYYY-MM-DD` */
export function utcDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10)
}

/** Returns the whole seconds, at least 1, until the UTC day ends. @param nowMs milliseconds since the epoch */
export function secondsToMidnight(nowMs: number): number {
  return Math.max(1, Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1000))
}

/** Returns the end of the UTC day of `nowMs`. @param nowMs milliseconds since the epoch */
export function nextMidnight(nowMs: number): Date {
  return new Date((Math.floor(nowMs / DAY_MS) + 1) * DAY_MS)
}

/** Returns the time one day after the end of `day`, in seconds since the epoch. */
export function dayAfterEndSeconds(day: string): number {
  return (Date.parse(day) + 2 * DAY_MS) / 1000
}
