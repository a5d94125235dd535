// Corrects undici's response parser where it is stricter or laxer than RFC 9110 and 9112.
import type { Socket } from 'node:net'

/** The parser of undici 7, a property of each connection's socket. */
interface UndiciParser {
  readonly ptr: number
  /** Names and values in turn, of the head just parsed. */
  readonly headers: readonly Buffer[]
  readonly llhttp: {
    llhttp_set_lenient_keep_alive(ptr: number, isOn: number): void
    llhttp_get_http_minor(ptr: number): number
  }
  onHeadersComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number
}

/**
 * Call this once for each connection that undici has taken over.
 *
 * - undici fails on a `100` that it did not ask for; RFC 9110 §15.2 says to ignore it. undici ignores a 101 without
 *   an upgrade, and llhttp reports the upgrade of every real 101, so a `100` is passed on as a 101.
 * - llhttp takes connection-specific fields in trailers or in an informational response for those of the response
 *   itself (RFC 9110 §6.5.1), and then takes the next response for data after the last. undici itself goes by the
 *   response head, and closes the connection if that says so.
 * - An HTTP/1.0 response has no transfer coding: if it names one, its framing is doubtful and the connection ends
 *   with it (RFC 9112 §6.1).
 */
export function patchUndiciParser(socket: Socket): void {
  const parser = parserOf(socket)
  // undici has already closed the connection.
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
