// A client's WebSocket handshake (RFC 6455 §4.2.1), and the bearer token that browsers can send no other way.
import type { IncomingMessage } from 'node:http'

/** Whether Node's parser handed the connection over with the request; its types do not declare it. */
type ReceivedRequest = IncomingMessage & { readonly upgrade?: boolean | null }

/** Whether a request asks for a WebSocket, with a valid handshake or not. */
export function asksForWebSocket(request: IncomingMessage): boolean {
  return (
    request.headers.upgrade !== undefined &&
    listOf(request.headers.upgrade.toLowerCase()).includes('websocket')
  )
}

/**
 * Whether the handshake is valid. A body is not: one side would take it for frames and the other would not.
 * @param request one for which `asksForWebSocket` holds
 */
export function isHandshake({ method, httpVersion, headers, upgrade }: ReceivedRequest): boolean {
  const options = listOf((headers.connection ?? '').toLowerCase())
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    options.includes('upgrade') &&
    // Node's parser reads Connection too, and not as we do: where it sees no upgrade, it goes on parsing HTTP.
    upgrade === true &&
    headers['transfer-encoding'] === undefined &&
    (headers['content-length'] ?? '0') === '0' &&
    headers.expect === undefined &&
    headers['sec-websocket-version'] === '13' &&
    // Sixteen bytes in base64, and the header only once: Node joins two with a comma.
    /^[A-Za-z0-9+/]{21}[AQgw]==$/.test(headers['sec-websocket-key'] ?? '')
  )
}

/** The parsed `Sec-WebSocket-Protocol`. */
interface OfferedProtocols {
  /** The tokens of `peage.bearer.<token>` entries (CONTRACT §4), which are not forwarded. */
  readonly bearers: readonly string[]
  readonly others: readonly string[]
}

/** @param value of the header, or of several joined by commas */
export function parseOfferedProtocols(value: string | undefined): OfferedProtocols {
  const bearers: string[] = []
  const others: string[] = []
  for (const protocol of listOf(value ?? '')) {
    if (protocol.startsWith(bearerPrefix)) bearers.push(protocol.slice(bearerPrefix.length))
    // A misspelt entry is not a credential but still a secret, so it is dropped.
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
