// What an operator's browser sees of the admin listener: the socket and `Host`, or what a trusted proxy says of them.
import type { IncomingMessage } from 'node:http'
import { createTrustedProxies, rateLimitKey } from '../../http/client-address.ts'

export interface BrowserView {
  /** As an `Origin` would name it, default port left out; undefined if `Host` is missing or unreadable. */
  readonly origin: string | undefined
  /** Whether the browser came by HTTPS. */
  readonly isSecure: boolean
  /** Whether a trusted proxy sent the request: `Host` may then be any. */
  readonly isForwarded: boolean
  /** The rate-limit key of the browser's address. */
  readonly client: string
}

export type SeenByBrowser = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => BrowserView

/** @param trustedProxies `server.trusted_proxies` */
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

/** What the nearest proxy wrote: those before it may be the client's. */
function lastOf(value: string | string[] | undefined): string | undefined {
  return [value ?? []].flat().at(-1)?.split(',').at(-1)?.trim()
}
