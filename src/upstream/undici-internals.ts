// Contains every use of a private part of undici 7. docs/dev/private-parts.md lists the reasons, gains and tests.
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { readBeforeFailing } from '../http/node-internals.ts'

/**
 * Wraps a connector so that responses end as RFC 9112 requires.
 * @param onSocket called with each socket before undici receives it; `end` listeners that it adds run before undici's
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
 * Hides the error code ECONNRESET from the listeners that `addListeners` adds. undici treats a reset as the regular end
 * of a response. So a response that a reset cuts off would look complete. If that response were paused, undici would
 * end the process.
 *
 * Remove this when undici does not treat a reset as an end. https://github.com/nodejs/undici/pull/784
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
  /** Alternating names and values of the head just parsed. */
  readonly headers: readonly Buffer[]
  readonly llhttp: {
    llhttp_set_lenient_keep_alive(ptr: number, isOn: number): void
    llhttp_get_http_minor(ptr: number): number
  }
  onHeadersComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number
}

/**
 * Corrects undici's response parser to follow RFC 9110 and 9112. Call this once for each connection that undici has
 * taken over.
 *
 * - RFC 9110 §15.2 requires that an unexpected `100` is ignored, but undici fails on it. The parser ignores a 101 that
 *   is not marked as an upgrade, and llhttp marks every real 101 as an upgrade. So a `100` is passed on as a 101
 *   without this mark. Remove this when undici ignores a `100`. https://github.com/nodejs/undici/issues/197
 * - Connection-specific headers in trailers or in an informational response must not apply to the response itself
 *   (RFC 9110 §6.5.1). But llhttp applies them, and then rejects the next response on the connection. So this check of
 *   llhttp is turned off. If the head of the response requires it, undici still closes the connection. Remove this when
 *   llhttp uses only the head. https://github.com/nodejs/llhttp/pull/94
 * - An HTTP/1.0 response must not have a transfer coding. If it has a `Transfer-Encoding` header, its framing is
 *   unreliable and the connection must be closed (RFC 9112 §6.1). Remove this when llhttp closes it.
 *   https://github.com/nodejs/llhttp/issues/354
 */
function correctParser(socket: Socket): void {
  const parser = parserOf(socket)
  // Without a parser, undici has already closed the connection.
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
