// Defines refusals, which are expected errors. Any code may throw a refusal, but only http/error-handlers.ts sends it.
// Any other thrown error is unexpected.
import {
  type Bilingual,
  type CatalogEntry,
  type CodeWithReasons,
  catalog,
  type Language,
  type RefusalCode,
} from './catalog.ts'

interface Details {
  /** Replaces the catalog's status. For example, `user_not_found` is 404 in the admin API. */
  status?: number
  /** Additional members of the body. */
  body?: Readonly<Record<string, unknown>>
  /** Replaces the texts of the catalog. */
  texts?: Bilingual
  /** Additional headers of the response. Every refusal also has the standard headers. */
  headers?: Readonly<Record<string, string>>
  /** The cause of the refusal, for the log only. The client never sees it. */
  cause?: unknown
  /** The reason in the log: a fixed word or a configuration key, never text from the request. */
  reason?: string
}

interface RefusalResponse {
  /** Alternating header names and values. */
  readonly fields: readonly string[]
  /** The body as latin1 text, with one character per byte, so that Node sends head and body in one piece. */
  readonly body: string
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number
  readonly #details: Details
  #response: RefusalResponse | undefined
  #language: Language | undefined

  constructor(code: RefusalCode, details: Details & { reason: string })
  constructor(code: Exclude<RefusalCode, CodeWithReasons>, details?: Details)
  constructor(code: RefusalCode, details: Details = {}) {
    // A refusal needs no stack trace. Capturing one takes longer than all guards that ran before it.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code, { cause: details.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.status = details.status ?? catalog[code].status
    this.#details = details
  }

  /** The reason for a 401, 403 or 429; undefined for any other status. */
  get reason(): string | undefined {
    if (!statusesWithReason.has(this.status)) return undefined
    const entry: CatalogEntry = catalog[this.code]
    return this.#details.reason ?? entry.reason
  }

  /**
   * Returns the response. It is cached, because some refusals are sent several times. It is built again only if the
   * language changes.
   */
  response(language: Language): RefusalResponse {
    if (this.#response === undefined || this.#language !== language) {
      this.#response = responseOf(this.code, language, this.#details)
      this.#language = language
    }
    return this.#response
  }
}

const statusesWithReason: ReadonlySet<number> = new Set([401, 403, 429])

function responseOf(
  code: RefusalCode,
  language: Language,
  { headers = {}, body, texts = catalog[code] }: Details,
): RefusalResponse {
  const bytes = Buffer.from(JSON.stringify({ error: texts[language], ...body }))
  const fields = [
    ['content-type', 'application/json; charset=utf-8'],
    ['content-length', String(bytes.length)],
    ['cache-control', 'no-store'],
    ['x-peage-error', code],
    ...Object.entries(headers),
  ]
  return { fields: fields.flat(), body: bytes.toString('latin1') }
}

/**
 * Creates a 503 with `Retry-After: 1`. Use it if a response needs storage or another dependency that is not available.
 */
export function serviceUnavailable(cause?: unknown): Refusal {
  return new Refusal('service_unavailable', { headers: { 'retry-after': '1' }, cause })
}

/** The client disconnected before the gateway responded. This is neither a refusal nor an error of the gateway. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected'
}
