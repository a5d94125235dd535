// An expected refusal: thrown anywhere, sent in one place (http/error-handlers.ts). Anything else thrown is unexpected.
import { type CatalogEntry, type CodeWithReasons, catalog, type RefusalCode } from './catalog.ts'

interface Details {
  /** Replaces the catalogue's status, for a code with another status elsewhere (`user_not_found` in §7). */
  status?: number
  /** Members of the body in addition to (or in place of) the catalogue's `error`. */
  body?: Readonly<Record<string, unknown>>
  /** Response headers in addition to those that every refusal carries. */
  headers?: Readonly<Record<string, string>>
  /** For the log; the client never sees it. */
  cause?: unknown
  /** For the log: why a request got 401, 403 or 429. A fixed word or a key of the configuration, never from a request. */
  reason?: string
}

interface RefusalResponse {
  /** Header names and values in turn. */
  readonly fields: readonly string[]
  /** latin1, one byte per character: Node then sends head and body in one piece. */
  readonly body: string
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number
  readonly #details: Details
  #response: RefusalResponse | undefined

  constructor(code: RefusalCode, details: Details & { reason: string })
  constructor(code: Exclude<RefusalCode, CodeWithReasons>, details?: Details)
  constructor(code: RefusalCode, details: Details = {}) {
    // An expected refusal needs no stack trace, and capturing one costs more than all guards before it.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code, { cause: details.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.status = details.status ?? catalog[code].status
    this.#details = details
  }

  /** Why the request got 401, 403 or 429; undefined with any other status. */
  get reason(): string | undefined {
    if (!statusesWithReason.has(this.status)) return undefined
    const entry: CatalogEntry = catalog[this.code]
    return this.#details.reason ?? entry.reason
  }

  /** CONTRACT §4: JSON, `Cache-Control: no-store`, the code in `X-Peage-Error`. Built once: some are reused. */
  get response(): RefusalResponse {
    this.#response ??= responseOf(this.code, this.#details)
    return this.#response
  }
}

const statusesWithReason: ReadonlySet<number> = new Set([401, 403, 429])

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

/** Storage, or anything else that a response needs, is unavailable: 503 with `Retry-After: 1` (CONTRACT §4). */
export function serviceUnavailable(cause?: unknown): Refusal {
  return new Refusal('service_unavailable', { headers: { 'retry-after': '1' }, cause })
}

/** The client disconnected before its response: neither a refusal nor an error of ours. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected'
}
