// Parses a client's WebSocket handshake (RFC 6455 §4.2.1), and the bearer token that browsers send in it.
import type { IncomingMessage } from 'node:http'

/** `upgrade` is true if Node's parser handed over the connection. Node's types do not declare this property. */
type ReceivedRequest = Pick<IncomingMessage, 'method' | 'headers' | 'httpVersion'> & {
  readonly upgrade?: boolean | null
}

/** Returns whether the request has `Upgrade: websocket`, even if its handshake is invalid. */
export function asksForWebSocket(request: Pick<IncomingMessage, 'headers'>): boolean {
  return (
    request.headers.upgrade !== undefined &&
    listOf(request.headers.upgrade.toLowerCase()).includes('websocket')
  )
}

/**
 * Returns whether the handshake is valid. A body makes it invalid, because the gateway or the upstream could read the
 * body as WebSocket frames.
 */
export function isHandshake({ method, httpVersion, headers, upgrade }: ReceivedRequest): boolean {
  const options = listOf((headers.connection ?? '').toLowerCase())
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    options.includes('upgrade') &&
    // Node's parser can find no upgrade although `options` contains one. It then continues to parse HTTP.
    upgrade === true &&
    headers['transfer-encoding'] === undefined &&
    (headers['content-length'] ?? '0') === '0' &&
    headers.expect === undefined &&
    headers['sec-websocket-version'] === '13' &&
    // The key must be 16 bytes in base64. Two key headers do not match, because Node joins them with a comma.
    /^[A-Za-z0-9+/]{21}[AQgw]==$/.test(headers['sec-websocket-key'] ?? '')
  )
}

interface OfferedProtocols {
  /** The tokens from entries of the form `peage.bearer.<token>`. These entries are not forwarded. */
  readonly bearers: readonly string[]
  readonly others: readonly string[]
}

/** @param value the value of `Sec-WebSocket-Protocol`, or several values joined by commas */
export function parseOfferedProtocols(value: string | undefined): OfferedProtocols {
  const bearers: string[] = []
  const others: string[] = []
  for (const protocol of listOf(value ?? '')) {
    if (protocol.startsWith(bearerPrefix)) bearers.push(protocol.slice(bearerPrefix.length))
    // A misspelled `peage.bearer` entry is not a credential but may contain a secret, so it is not forwarded.
    else if (!protocol.toLowerCase().includes(bearerPrefix)) others.push(protocol)
  }
  return { bearers, others }
}

export const bearerPrefix = 'peage.bearer.'

function listOf(value: string): string[] {
  return value
    .split(',')
    .map(item => item.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter(item => item !== '')
}
