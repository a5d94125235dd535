// Parses the Retry-After header of a receiver's response (RFC 9110 §10.2.3).

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
