// Computes UTC calendar days and months. Free uses are counted per UTC day.
import type { Period } from '../config/formats/units.ts'

const DAY_MS = 86_400_000

/** @param nowMs milliseconds since the epoch @returns `YYYY-MM-DD` */
export function utcDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10)
}

/** Returns the whole seconds, at least 1, until the UTC day ends. @param nowMs milliseconds since the epoch */
export function secondsToMidnight(nowMs: number): number {
  return Math.max(1, Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1000))
}

/** Returns the time one day after the end of `day`, in seconds since the epoch. */
export function dayAfterEndSeconds(day: string): number {
  return (Date.parse(day) + 2 * DAY_MS) / 1000
}

/** Returns the end of the period that contains the time. Both times are in milliseconds since the epoch. */
export function periodEndMs(period: Period, timeMs: number): number {
  const time = new Date(timeMs)
  const [year, month, day] = [time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate()]
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)
}
