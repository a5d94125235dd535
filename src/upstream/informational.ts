// Informational (1xx) responses (RFC 9110 §15.2), and the reason phrase of every response.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'

/**
 * Relays an informational response with its Link headers only: Early Hints are for these (RFC 8297), and no other
 * header (a length, a cookie) reaches an intermediary that might take it for the final response's.
 * @param rawHeaders names and values in turn, as undici passes them
 */
export function writeInformational(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  rawHeaders: readonly Buffer[],
): void {
  // An HTTP/1.0 client does not know 1xx, and would take it for the final response.
  if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) return
  const { socket } = response
  if (socket === null || response.headersSent) return
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as Buffer).toString('latin1')
    const value = (rawHeaders[i + 1] as Buffer).toString('latin1')
    if (/^link$/i.test(name) && isFieldValue(value)) head += `${name}: ${value}\r\n`
  }
  // node:http writes Early Hints in one strict form only, and has no way to write an arbitrary 1xx.
  socket.write(`${head}\r\n`, 'latin1')
}

function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/** undici decodes the phrase as UTF-8. node:http may refuse non-ASCII, so the standard phrase replaces it. */
export function reasonPhrase(status: number, phrase: string): string {
  return /^[\t -~]*$/.test(phrase) ? phrase : (STATUS_CODES[status] ?? '')
}
