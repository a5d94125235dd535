// How long a receiver asks us to wait, by the Retry-After of its answer (RFC 9110 §10.2.3).

/** Milliseconds: a receiver may put a delivery off, not away. */
const maxRetryAfterMs = 24 * 60 * 60_000

/** `delay-seconds`: digits alone. */
const delaySecondsPattern = /^[0-9]+$/

/** `HTTP-date`: the form to be sent, then the two obsolete ones that are still to be read (RFC 9110 §5.6.7). */
const httpDatePatterns = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
]
const asctimePattern = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/

/**
 * @param field the field's value
 * @param now milliseconds since the epoch, by our own clock: a date is compared to it
 * @returns milliseconds from now on, a day at most; 0 where the value is neither form, or a date that is over
 */
export function parseRetryAfterMs(field: string, nowMs: number): number {
  const value = field.trim()
  if (delaySecondsPattern.test(value)) return Math.min(Number(value) * 1000, maxRetryAfterMs)
  const dateMs = parseHttpDateMs(value)
  return Number.isNaN(dateMs) ? 0 : Math.max(0, Math.min(dateMs - nowMs, maxRetryAfterMs))
}

function parseHttpDateMs(value: string): number {
  if (httpDatePatterns.some(form => form.test(value))) return Date.parse(value)
  // It names no zone, and is of UTC all the same.
  return asctimePattern.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
}
