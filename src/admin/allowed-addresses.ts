// Decides which client addresses may call the admin listener (`admin.allow_from`).
import type { IncomingMessage } from 'node:http'
import { createNetworks, createTrustedProxies } from '../http/client-address.ts'

export type IsAllowedAddress = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => boolean

/**
 * The socket's address must be allowed. If it is a trusted proxy, the client's address must be allowed too. If only the
 * proxy were checked, all of its clients could call the admin listener.
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
