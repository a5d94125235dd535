// Evaluates a receiver's response to a message: delivered, failed, or to be retried.
import { parseDuration } from '../../config/formats/units.ts'
import type { AttemptOutcome } from '../../outbox/attempt-store.ts'
import { retryDelayMs } from '../../outbox/retry-delay.ts'
import type { SendOutcome } from './send.ts'

/**
 * @param attempts the number of attempts so far, including this one; if `is_last` is set, no attempt follows
 * @param random a random number from 0 to 1
 * @param nowMs milliseconds since the epoch
 */
export function outcomeOf(
  outcome: SendOutcome,
  { attempts, is_last = false }: { attempts: number; is_last?: boolean },
  random: number,
  nowMs: number,
): AttemptOutcome<'delivered'> {
  const responseStatus = outcome.kind === 'answered' ? outcome.status : null
  const error = outcome.kind === 'failed' ? `${outcome.reason}: ${outcome.message}` : null
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
    return { responseStatus, error, result: 'delivered' }
  }
  const retryAfterMs = outcome.kind === 'answered' ? parseRetryAfterMs(outcome.retryAfter ?? '', nowMs) : 0
  const delayMs =
    responseStatus === 410 || is_last
      ? undefined
      : retryDelayMs(retryDelaysMs, attempts, random, retryAfterMs)
  return {
    responseStatus,
    error,
    result: delayMs === undefined ? 'failed' : { retryAt: new Date(nowMs + delayMs) },
  }
}

/** The delays add up to about three days, as Standard Webhooks recommends. */
export const retryDelaysMs = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map(parseDuration)

/** The maximum delay that a receiver can request with Retry-After. A receiver must not postpone a delivery forever. */
const maxRetryAfterMs = 24 * 60 * 60_000

/** Matches `delay-seconds` (RFC 9110 §10.2.3), which consists only of digits. */
const delaySecondsPattern = /^[0-9]+$/

/** Matches `HTTP-date`: IMF-fixdate, then the two obsolete formats that recipients must accept (RFC 9110 §5.6.7). */
const httpDatePatterns = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
]
const asctimePattern = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/

/**
 * Parses the Retry-After header of a receiver's response (RFC 9110 §10.2.3).
 * @param field the value of the header
 * @param nowMs the time on the gateway's clock, in milliseconds since the epoch; used only for a date in the header
 * @returns milliseconds from now, at most one day; 0 if the value is invalid or the date has passed
 */
export function parseRetryAfterMs(field: string, nowMs: number): number {
  const value = field.trim()
  if (delaySecondsPattern.test(value)) return Math.min(Number(value) * 1000, maxRetryAfterMs)
  const dateMs = parseHttpDateMs(value)
  return Number.isNaN(dateMs) ? 0 : Math.max(0, Math.min(dateMs - nowMs, maxRetryAfterMs))
}

function parseHttpDateMs(value: string): number {
  if (httpDatePatterns.some(form => form.test(value))) return Date.parse(value)
  // An asctime date contains no time zone, but it is in UTC.
  return asctimePattern.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
}
