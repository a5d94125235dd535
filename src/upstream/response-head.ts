// Builds the head of an upstream's response for the client: headers, trailers, 1xx responses and reason phrase.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/** Changes to the headers of an upstream's response, from a route or from CORS. */
export interface ResponseHeaderRules {
  /** The headers to add, as alternating names and values. */
  readonly set: readonly string[]
  /**
   * The names of the upstream's headers to remove, in lower case. They include the names in `set`, so that `set`
   * replaces the upstream's headers.
   */
  readonly remove: ReadonlySet<string>
}

/**
 * @param status the status code; in a 204 or 1xx response, `Content-Length` is removed
 * @param rawHeaders alternating names and values, as undici passes them
 * @param requestId the request ID, which is added if the upstream sends none
 * @param canSendTrailers whether the response can carry trailers; if not, node:http rejects a `Trailer` header
 * @throws Refusal 502 if the body has a transfer coding that the gateway cannot decode (all except `chunked`)
 */
export function relayHeaders(
  status: number,
  rawHeaders: readonly Buffer[],
  requestId: string,
  rules?: ResponseHeaderRules,
  canSendTrailers = false,
): string[] {
  const fields: string[] = []
  let connectionOptions: Set<string> | undefined
  let via = ''
  let hasRequestId = false
  let isChunked = false
  let trailerFields: string[] | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { name, lower, isDropped } = describeHeaderName(text(rawHeaders[i]))
    if (isDropped) {
      if (lower === 'connection')
        connectionOptions = addConnectionOptions(text(rawHeaders[i + 1]), connectionOptions)
      else if (lower === 'transfer-encoding') {
        if (isChunked || !isOnlyChunked(text(rawHeaders[i + 1]))) throw unsupportedTransferCoding()
        isChunked = true
      } else if (lower === 'trailer')
        trailerFields = [...(trailerFields ?? []), name, text(rawHeaders[i + 1])]
      continue
    }
    const value = text(rawHeaders[i + 1])
    if (lower === 'via') via = via === '' ? value : `${via}, ${value}`
    else if (!rules?.remove.has(lower)) fields.push(name, value)
    if (lower === 'x-request-id') hasRequestId = true
  }
  let relayed = connectionOptions === undefined ? fields : without(connectionOptions, fields)
  // With a `Content-Length` header, clients would wait for a body that does not follow (RFC 9110 §8.6).
  if (status === 204 || status < 200) relayed = without(lengthOnly, relayed)
  if (trailerFields !== undefined && isChunked && canSendTrailers) relayed.push(...trailerFields)
  if (rules !== undefined) relayed.push(...rules.set)
  if (!hasRequestId || connectionOptions?.has('x-request-id')) relayed.push('x-request-id', requestId)
  relayed.push('via', via === '' ? '1.1 peage' : `${via}, 1.1 peage`)
  return relayed
}

export function relayTrailers(
  rawTrailers: readonly (string | Buffer)[],
  rules?: ResponseHeaderRules,
): [string, string][] {
  const trailers: [string, string][] = []
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const { name, lower, isDropped } = describeHeaderName(text(rawTrailers[i]))
    if (!isDropped && !rules?.remove.has(lower)) trailers.push([name, text(rawTrailers[i + 1])])
  }
  return trailers
}

/**
 * Returns whether undici can decode the transfer coding. undici decodes only `chunked`, and only once (RFC 9112 §6.1).
 * It does not decode `identity`, which RFC 7230 removed, or `chunked` followed by a tab.
 */
function isOnlyChunked(value: string): boolean {
  return value === 'chunked' || /^chunked *$/i.test(value)
}

function unsupportedTransferCoding(): Refusal {
  const cause = new Error('the upstream response has a transfer coding other than chunked')
  return new Refusal('upstream_unreachable', { cause })
}

/**
 * Adds the names that a `Connection` header contains. The headers with these names are hop-by-hop too. `Content-Length`
 * is an exception, because it frames the body.
 */
function addConnectionOptions(value: string, known: Set<string> | undefined): Set<string> | undefined {
  // `keep-alive` is the most frequent value. Nothing must be added for it, because the `Keep-Alive` header is always
  // dropped.
  if (value === 'keep-alive') return known
  const connectionOptions = known ?? new Set<string>()
  for (const option of value.toLowerCase().split(',')) connectionOptions.add(option.trim())
  connectionOptions.delete('content-length')
  return connectionOptions
}

const lengthOnly = new Set(['content-length'])

function without(names: ReadonlySet<string>, fields: string[]): string[] {
  const others: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.has(name.toLowerCase())) others.push(name, fields[i + 1] as string)
  }
  return others
}

/** Decodes as latin1. Node also writes latin1, so every byte stays the same. */
function text(bytes: Buffer | string | undefined): string {
  return typeof bytes === 'string' ? bytes : (bytes as Buffer).toString('latin1')
}

interface HeaderName {
  readonly name: string
  readonly lower: string
  /**
   * Whether the header is hop-by-hop (RFC 9110 §7.6.1), or reserved for the gateway. `X-Peage-Error` is reserved,
   * because clients recognize a refusal of the gateway by it. `Alt-Svc` (RFC 7838) is reserved, because it would make
   * browsers bypass the gateway.
   */
  readonly isDropped: boolean
}

function describeHeaderName(name: string): HeaderName {
  const lower = name.toLowerCase()
  return { name, lower, isDropped: droppedNames.has(lower) || lower.startsWith('proxy-') }
}

const droppedNames = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-peage-error',
  'alt-svc',
  'alternate-protocol',
])

/**
 * Returns whether the response is an event stream, which does not end by itself.
 * @param fields response headers, alternating names and values
 */
export function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() === 'content-type') return /^text\/event-stream\b/i.test(fields[i + 1] ?? '')
  }
  return false
}

/**
 * Relays an informational response with only its `Link` headers, because they are the purpose of Early Hints
 * (RFC 8297). An intermediary might treat other headers, for example a length or a cookie, as headers of the final
 * response.
 * @param rawHeaders alternating names and values, as undici passes them
 */
export function writeInformational(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  rawHeaders: readonly Buffer[],
): void {
  // An HTTP/1.0 client does not support 1xx and would treat it as the final response.
  if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) return
  const { socket } = response
  // Early Hints are optional. They are dropped if the client reads too slowly.
  if (socket === null || socket.writableNeedDrain || response.headersSent) return
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as Buffer).toString('latin1')
    const value = (rawHeaders[i + 1] as Buffer).toString('latin1')
    if (/^link$/i.test(name) && isFieldValue(value)) head += `${name}: ${value}\r\n`
  }
  // The response is written to the socket, because node:http can write Early Hints only in one strict form. It cannot
  // write other 1xx responses.
  socket.write(`${head}\r\n`, 'latin1')
}

function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/**
 * undici decodes the reason phrase as UTF-8. node:http may reject non-ASCII text, so the standard phrase replaces it.
 */
export function reasonPhrase(status: number, phrase: string): string {
  return /^[\t -~]*$/.test(phrase) ? phrase : (STATUS_CODES[status] ?? '')
}
