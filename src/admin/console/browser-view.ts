// Determines how an operator's browser reached the admin listener. It uses the socket and `Host`, or the headers of a
// trusted proxy.
import type { IncomingMessage } from 'node:http'
import { createTrustedProxies, rateLimitKey } from '../../http/client-address.ts'

export interface BrowserView {
  /**
   * The origin of the admin listener as the browser sees it. It has the form of an `Origin` header, without the default
   * port. Undefined if the host is missing or invalid.
   */
  readonly origin: string | undefined
  /** Whether the browser connected by HTTPS. */
  readonly isSecure: boolean
  /** Whether a trusted proxy sent the request. If so, `Host` can be any name, not only a loopback name. */
  readonly isForwarded: boolean
  /** The rate-limit key of the browser's address. */
  readonly client: string
}

export type SeenByBrowser = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => BrowserView

export function createBrowserView(trustedProxies: readonly string[]): SeenByBrowser {
  const proxies = createTrustedProxies(trustedProxies)
  return ({ socket, headers }) => {
    const peer = socket.remoteAddress ?? ''
    const isForwarded = proxies.trusts(peer)
    const forwarded = (name: string) => (isForwarded ? lastOf(headers[name]) : undefined)
    const socketScheme = 'encrypted' in socket ? 'https' : 'http'
    const scheme = forwarded('x-forwarded-proto')?.toLowerCase() ?? socketScheme
    const url = `${scheme}://${forwarded('x-forwarded-host') ?? headers.host ?? ''}`
    const client = proxies.clientOf(peer, [headers['x-forwarded-for'] ?? []].flat().join(','))
    return {
      origin: /^https?:/.test(url) && URL.canParse(url) ? new URL(url).origin : undefined,
      isSecure: scheme === 'https',
      isForwarded,
      client: rateLimitKey(client),
    }
  }
}

/**
 * Returns the last value of the header, because the nearest proxy wrote it. The client may have written all earlier
 * values.
 */
function lastOf(value: string | string[] | undefined): string | undefined {
  return [value ?? []].flat().at(-1)?.split(',').at(-1)?.trim()
}
