// When a failed delivery is retried (CONTRACT §5), and what the receiver's Retry-After says of it (RFC 9110 §10.2.3).

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** After the first attempt, the second and so on: about three days, as Standard Webhooks recommends. */
export const retryDelaysMs: readonly number[] = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
]

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
