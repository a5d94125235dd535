// Decides which client addresses may call the admin listener (`admin.allow_from`).
import type { IncomingMessage } from 'node:http'
import { createNetworks, createTrustedProxies } from '../http/client-address.ts'

export type IsAllowedAddress = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => boolean

/**
 * Creates the filter of client addresses. The address of the socket must be allowed. If this address is a trusted
 * proxy, the address of the client must be allowed too. If only the proxy's address were checked, all clients of the
 * proxy could call the admin listener.
 * @param allowFrom the CIDRs or single addresses; undefined allows every address
 */
export function createAddressFilter(
  allowFrom: readonly string[] | undefined,
  trustedProxies: readonly string[],
): IsAllowedAddress {
  if (allowFrom === undefined) return () => true
  const isAllowed = createNetworks(allowFrom)
  const proxies = createTrustedProxies(trustedProxies)
  return ({ socket, headers }) => {
    const { remoteAddress: peer = '' } = socket
    const forwardedFor = [headers['x-forwarded-for'] ?? []].flat().join(',')
    const client = proxies.knownClientOf(peer, forwardedFor)
    return isAllowed(peer) && client !== undefined && isAllowed(client)
  }
}
