// Answers before the answer (RFC 9110 §15.2), and the reason phrase that any answer has.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'

/**
 * Passes an interim answer on, with its Link fields alone: they are what Early Hints are for (RFC 8297), and what
 * an intermediary on the way might take for the answer's own (a length, a cookie) is not among them.
 * @param raw names and values in turn, as undici gives them
 */
export function writeInformational(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  rawHeaders: readonly Buffer[],
): void {
  // A client of HTTP/1.0 knows none, and would take it for the answer.
  if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) return
  const { socket } = response
  if (socket === null || response.headersSent) return
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as Buffer).toString('latin1')
    const value = (rawHeaders[i + 1] as Buffer).toString('latin1')
    if (/^link$/i.test(name) && isFieldValue(value)) head += `${name}: ${value}\r\n`
  }
  // node:http writes Early Hints of one strict form only, and no other interim answer.
  socket.write(`${head}\r\n`, 'latin1')
}

function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/** undici reads the reason as UTF-8; what is not ASCII node:http might refuse to write, so the usual one stands in. */
export function reasonPhrase(status: number, phrase: string): string {
  return /^[\t -~]*$/.test(phrase) ? phrase : (STATUS_CODES[status] ?? '')
}
