// Corrects undici's response parser where it is stricter or laxer than RFC 9110 and 9112, and spares it timers.
import type { Socket } from 'node:net'
import { kFastTimer } from '../../http/undici.ts'

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
  timeout: { [kFastTimer]?: true; _idleTimeout: number; refresh(): void } | null
  timeoutValue: number | null
  timeoutType: number | null
  /** @param type the phase that `delayMs` limits: of a response's head, its body, or between requests */
  setTimeout(delayMs: number, type: number): void
}

/** The connection is idle: undici's constant, which it does not export. */
const keepAlivePhase = 8

/** How late undici's timers may be at most. */
const timerResolutionMs = 1_000

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
  keepTimer(parser)
}

/**
 * undici makes a new timer for each phase of a request that has another limit than the last. It looks at its timers
 * every half second, so those of ten thousand requests pile up meanwhile: 3 % of a request's time. One for each
 * connection is enough. An idle connection is closed up to a second early: late, its upstream may have closed it.
 */
function keepTimer(parser: UndiciParser): void {
  const { setTimeout } = parser
  parser.setTimeout = function (delayMs, type) {
    const { timeout } = this
    const limitMs = type === keepAlivePhase ? delayMs - timerResolutionMs : delayMs
    if (timeout?.[kFastTimer] !== true || limitMs <= 0) {
      setTimeout.call(this, delayMs, type)
      return
    }
    timeout._idleTimeout = limitMs
    timeout.refresh()
    this.timeoutValue = delayMs
    this.timeoutType = type
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
