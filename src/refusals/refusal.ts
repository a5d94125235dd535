// An expected no. Thrown anywhere, turned into its answer in one place (doors.ts); anything else is a fault.
import { catalog, type RefusalCode } from './catalog.ts'

interface Details {
  /** Replaces the catalogue's status, for a code that answers differently elsewhere (`user_not_found` in §7). */
  status?: number
  /** Fields of the body beside (or instead of) the catalogue's `error`. */
  body?: Readonly<Record<string, unknown>>
  /** Header fields of the answer, beside those that every refusal carries. */
  headers?: Readonly<Record<string, string>>
  /** What led to it, for the log; the client never sees it. */
  cause?: unknown
}

/** Names and values of the header in turn. */
export interface RefusalResponse {
  readonly fields: readonly string[]
  /** Bytes, one a character: Node then sends them with the head, in one piece. */
  readonly body: string
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number
  readonly #details: Details
  #response: RefusalResponse | undefined

  constructor(code: RefusalCode, details: Details = {}) {
    // Nobody looks for the place where an expected no came from, and to note it costs more than all guards before it.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code, { cause: details.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.status = details.status ?? catalog[code].status
    this.#details = details
  }

  /** CONTRACT §4: JSON, `Cache-Control: no-store`, the code in `X-Peage-Error`. Made once: some are said many times. */
  get response(): RefusalResponse {
    this.#response ??= responseOf(this.code, this.#details)
    return this.#response
  }
}

function responseOf(code: RefusalCode, { headers = {}, body }: Details): RefusalResponse {
  const bytes = Buffer.from(JSON.stringify({ error: catalog[code].error, ...body }))
  const fields = [
    ['content-type', 'application/json; charset=utf-8'],
    ['content-length', String(bytes.length)],
    ['cache-control', 'no-store'],
    ['x-peage-error', code],
    ...Object.entries(headers),
  ]
  return { fields: fields.flat(), body: bytes.toString('latin1') }
}

/** Storage or another thing that an answer needs is away: 503 with `Retry-After: 1` (CONTRACT §4). */
export function serviceUnavailable(cause?: unknown): Refusal {
  return new Refusal('service_unavailable', { headers: { 'retry-after': '1' }, cause })
}
