// What a receiver's response makes of a message: delivered, failed, or to be tried again (RFC 9110 §10.2.3: Retry-After).
import { parseDuration } from '../../config/formats/units.ts'
import type { AttemptOutcome } from '../../outbox/attempt-store.ts'
import { retryDelayMs } from '../../outbox/retry-delay.ts'
import type { SendOutcome } from './send.ts'

/**
 * @param attempts made so far, this one included; `is_last` where no other follows whatever the schedule has left
 * @param random from 0 to 1
 * @param nowMs since the epoch
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

/** After the first attempt, the second and so on: about three days, as Standard Webhooks recommends. */
export const retryDelaysMs = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map(parseDuration)

/** A receiver may postpone a delivery, but not indefinitely. */
const maxRetryAfterMs = 24 * 60 * 60_000

/** `delay-seconds`: digits only. */
const delaySecondsPattern = /^[0-9]+$/

/** `HTTP-date`: IMF-fixdate, then the two obsolete forms that recipients must still accept (RFC 9110 §5.6.7). */
const httpDatePatterns = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
]
const asctimePattern = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/

/**
 * Parses the Retry-After header of a receiver's response.
 * @param field the header's value
 * @param nowMs since the epoch, by our own clock; a date is compared with it
 * @returns milliseconds from now, a day at most; 0 when the value is invalid or the date is past
 */
export function parseRetryAfterMs(field: string, nowMs: number): number {
  const value = field.trim()
  if (delaySecondsPattern.test(value)) return Math.min(Number(value) * 1000, maxRetryAfterMs)
  const dateMs = parseHttpDateMs(value)
  return Number.isNaN(dateMs) ? 0 : Math.max(0, Math.min(dateMs - nowMs, maxRetryAfterMs))
}

function parseHttpDateMs(value: string): number {
  if (httpDatePatterns.some(form => form.test(value))) return Date.parse(value)
  // An asctime date names no zone; it is in UTC.
  return asctimePattern.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
}
