// Every use of a private part of undici 7: docs/dev/private-parts.md lists their reasons, gains and tests.
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { readBeforeFailing } from '../http/node-internals.ts'

/**
 * Makes connections whose responses end where RFC 9112 says.
 * @param onSocket called with each socket before undici sees it: a listener of `end` that it adds runs before undici's
 */
export function correctUndici(
  connect: buildConnector.connector,
  onSocket: (socket: Socket) => void,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      readBeforeFailing(socket)
      onSocket(socket)
      aroundErrors(socket, () => callback(null, socket))
      correctParser(socket)
    })
}

/**
 * Hides the error code ECONNRESET from the listeners that `addListeners` adds. undici takes a reset for the end of a
 * response: a response cut off by a reset would look complete, and a paused one would end the process.
 *
 * Can go when undici takes no reset for an end. https://github.com/nodejs/undici/pull/784
 */
function aroundErrors(socket: Socket, addListeners: () => void): void {
  let code: string | undefined
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code
    if (code === 'ECONNRESET') error.code = 'ECONNABORTED'
  })
  addListeners()
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (code !== undefined) error.code = code
  })
}

/** undici's parser, a property of each connection's socket. */
interface Parser {
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
 * Corrects undici's response parser where it is stricter or laxer than RFC 9110 and 9112. Call this once for each
 * connection that undici has taken over.
 *
 * - undici fails on a `100` that it did not ask for. RFC 9110 §15.2 says to ignore it. undici ignores a 101 without an
 *   upgrade, and llhttp reports the upgrade of every real 101, so a `100` is passed on as a 101.
 *   Can go when undici ignores a `100`. https://github.com/nodejs/undici/issues/197
 * - llhttp takes connection-specific fields in trailers or in an informational response for fields of the response
 *   itself (RFC 9110 §6.5.1), and then takes the next response for data after the last. undici itself goes by the
 *   response head, and closes the connection if that says so.
 *   Can go when llhttp goes by the head too. https://github.com/nodejs/llhttp/pull/94
 * - An HTTP/1.0 response has no transfer coding. If it names one, its framing is doubtful and the connection ends with
 *   it (RFC 9112 §6.1). Can go when llhttp does so. https://github.com/nodejs/llhttp/issues/354
 */
function correctParser(socket: Socket): void {
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

function parserOf(socket: Socket): Parser | undefined {
  for (const symbol of Object.getOwnPropertySymbols(socket))
    if (symbol.description === 'parser') return (socket as Socket & { [parser: symbol]: Parser })[symbol]
  return undefined
}

function hasTransferCoding(headers: readonly Buffer[]): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if ((headers[i] as Buffer).toString('latin1').toLowerCase() === 'transfer-encoding') return true
  return false
}
