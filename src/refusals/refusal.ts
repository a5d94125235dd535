// An expected no. Thrown anywhere, turned into its answer in one place (answer.ts); anything else is a fault.
import { catalog, type RefusalCode } from './catalog.ts'

interface Details {
  /** Replaces the catalogue's status, for a code that answers differently elsewhere (`user_not_found` in §7). */
  status?: number
  /** Fields of the body beside (or instead of) the catalogue's `error`. */
  body?: Record<string, unknown>
  /** Header fields of the answer, beside those that every refusal carries. */
  headers?: Record<string, string>
  /** What led to it, for the log; the client never sees it. */
  cause?: unknown
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor(code: RefusalCode, details: Details = {}) {
    super(code, { cause: details.cause })
    this.code = code
    this.status = details.status ?? catalog[code].status
    this.body = { error: catalog[code].error, ...details.body }
    this.headers = details.headers ?? {}
  }
}

/** Storage or another thing that an answer needs is away: 503 with `Retry-After: 1` (CONTRACT §4). */
export function serviceUnavailable(cause?: unknown): Refusal {
  return new Refusal('service_unavailable', { headers: { 'retry-after': '1' }, cause })
}
