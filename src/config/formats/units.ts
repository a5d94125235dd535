// Parses quantities: durations, sizes, percentages, and rates.

/**
 * The error for an invalid value. Its message describes a valid value and never repeats the invalid value. If the
 * message is empty, `formatError` uses the noun of the format instead. So several formats can share a parser.
 */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

interface Rate {
  readonly limit: number
  readonly windowMs: number
}

/** The period after which the uses of a quota start again from 0: a calendar day or a calendar month, in UTC. */
export type Period = 'day' | 'month'

/** The uses of a quota that a plan allows. */
export interface Allowance {
  /** The allowance as written in the file, for example `1000/month`. */
  readonly text: string
  /** The uses per period. 0 if the plan has no uses, Infinity if its uses are not limited. */
  readonly limit: number
  /** Undefined if the limit is 0 or Infinity. */
  readonly period: Period | undefined
}

/** Maximum delay of a timer. If the delay is longer, Node fires the timer at once. */
const MAX_TIMER_MS = 2 ** 31 - 1
const DAY_MS = 86_400_000
const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
}
const DURATION = /^([0-9]+)(ms|s|m|h|d)$/
const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/**
 * Parses the duration of a timer, such as `250ms`, `30s`, `15m`, `2h` or `7d`. Returns milliseconds, at most 24 days.
 */
export function parseDuration(text: string): number {
  const duration = readDurationMs(text)
  if (duration > MAX_TIMER_MS) throw new FormatError('must be at most 24d')
  return duration
}

/** Parses the interval between two DNS lookups of a name (1 s to 1 h), and returns it in milliseconds. */
export function parseLookUpInterval(text: string): number {
  const interval = parseDuration(text)
  if (interval < 1_000 || interval > 3_600_000) throw new FormatError('must be a duration from 1s to 1h')
  return interval
}

const NONE = /^0(ms|s|m|h|d)?$/

/** Parses the duration of a timer, and returns it in milliseconds. 0 means no limit. */
export function parseAge(text: string): number {
  return NONE.test(text) ? 0 : parseDuration(text)
}

/** Parses a lifetime, and returns it in milliseconds. 0 means no limit. */
export function parseSessionMax(text: string): number {
  return NONE.test(text) ? 0 : parseLifetime(text)
}

/**
 * Parses a lifetime (1 s to 10 years), and returns it in milliseconds. The lifetime must be a whole number of seconds,
 * because JWTs contain times in seconds.
 */
export function parseLifetime(text: string): number {
  const lifetime = readDurationMs(text)
  if (lifetime % 1_000 !== 0) throw new FormatError('must be a whole number of seconds')
  if (lifetime > 3_650 * DAY_MS) throw new FormatError('must be at most 3650d')
  return lifetime
}

/** Parses `64KiB` or `10MiB` to bytes. */
export function parseSize(text: string): number {
  const [, digits, unit = ''] = /^([0-9]+)(B|KiB|MiB|GiB)$/.exec(text) ?? []
  if (digits === undefined) throw new FormatError('must be a size such as 64KiB or 10MiB')
  return checkPositive(Number(digits) * (SIZE_UNITS[unit] ?? Number.NaN))
}

/** Parses `50%` to 50. */
export function parsePercent(text: string): number {
  const [, digits] = /^([0-9]{1,3})%$/.exec(text) ?? []
  const percent = Number(digits)
  if (digits === undefined || percent < 1 || percent > 100) {
    throw new FormatError('must be a percentage from 1% to 100%, such as 50%')
  }
  return percent
}

/** Parses a rate. For example, `300/1m` allows 300 uses in any minute. `0` becomes `null`, which means no limit. */
export function parseRate(text: string | 0): Rate | null {
  if (text === 0 || text === '0') return null
  const [, digits, window] = /^([0-9]{1,9})\/(.+)$/.exec(text) ?? []
  if (digits === undefined || window === undefined || !DURATION.test(window)) {
    throw new FormatError('must be a rate such as 300/1m, or 0 for no limit')
  }
  if (Number(digits) === 0)
    throw new FormatError('must allow at least 1; to turn the limit off, write 0 without a duration')
  return { limit: Number(digits), windowMs: parseDuration(window) }
}

const mostUses = 1_000_000_000

/** Parses `100/day`, `1000/month`, `unlimited` or `0`. */
export function parseAllowance(text: string): Allowance {
  if (text === 'unlimited') return { text, limit: Number.POSITIVE_INFINITY, period: undefined }
  if (text === '0') return { text, limit: 0, period: undefined }
  const [, digits, period] = /^([0-9]{1,12})\/(day|month)$/.exec(text) ?? []
  if (digits === undefined) throw new FormatError()
  const limit = Number(digits)
  if (limit === 0)
    throw new FormatError('must allow at least 1; for a plan without uses, write 0 without a period')
  if (limit > mostUses)
    throw new FormatError('must be at most 1000000000 per period; write unlimited for no limit')
  return { text, limit, period: period as Period }
}

function readDurationMs(text: string): number {
  const [, digits, unit = ''] = DURATION.exec(text) ?? []
  if (digits === undefined) throw new FormatError()
  return checkPositive(Number(digits) * (DURATION_UNITS[unit] ?? Number.NaN))
}

function checkPositive(quantity: number): number {
  if (quantity === 0) throw new FormatError('must be more than 0')
  if (!Number.isSafeInteger(quantity)) throw new FormatError('is too large')
  return quantity
}
