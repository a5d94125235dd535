// undici's parser of answers, where it is stricter or laxer than RFC 9110 and 9112.
import type { Socket } from 'node:net'

/** Of undici 7: it hangs on the socket of each connection. */
interface UndiciParser {
  readonly ptr: number
  /** Names and values in turn, of the head that has just come. */
  readonly headers: readonly Buffer[]
  readonly llhttp: {
    llhttp_set_lenient_keep_alive(ptr: number, isOn: number): void
    llhttp_get_http_minor(ptr: number): number
  }
  onHeadersComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number
}

/**
 * To be called once for a connection that undici has taken.
 *
 * - A `100` that it did not ask for is an error to undici; RFC 9110 §15.2 wants it passed over. It passes a 101 over where
 *   no upgrade comes with it, and llhttp says of every real one that an upgrade does.
 * - llhttp takes the connection-specific fields among the trailers, or in an interim answer, for the answer's own (RFC 9110
 *   §6.5.1), and then takes the next answer for data behind the last. undici itself goes by the answer's head, and closes
 *   what that says to close.
 * - An answer of HTTP/1.0 has no transfer coding: what it is framed by is doubtful, and the connection ends with it
 *   (RFC 9112 §6.1).
 */
export function patchUndiciParser(socket: Socket): void {
  const parser = parserOf(socket)
  // undici has closed the connection already.
  if (parser === undefined) return
  const { llhttp, ptr } = parser
  llhttp.llhttp_set_lenient_keep_alive(ptr, 1)
  const { onHeadersComplete } = parser
  parser.onHeadersComplete = function (status, isUpgrade, keepsAlive) {
    const mayKeepAlive =
      keepsAlive && (llhttp.llhttp_get_http_minor(ptr) !== 0 || !hasTransferCoding(this.headers))
    return onHeadersComplete.call(this, status === 100 ? 101 : status, isUpgrade, mayKeepAlive)
  }
}

function parserOf(socket: Socket): UndiciParser | undefined {
  for (const symbol of Object.getOwnPropertySymbols(socket))
    if (symbol.description === 'parser')
      return (socket as Socket & { [parser: symbol]: UndiciParser })[symbol]
  return undefined
}

function hasTransferCoding(headers: readonly Buffer[]): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if ((headers[i] as Buffer).toString('latin1').toLowerCase() === 'transfer-encoding') return true
  return false
}
