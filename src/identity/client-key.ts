// Defines the key under which limits count a client.
import { rateLimitKey } from '../http/client-address.ts'
import type { Identity } from './identity.ts'

/** A user's id, or an anonymous client's address. An address contains a dot or a colon, so it cannot equal an id. */
export type ClientKey = number | string

/** @param address the client's address; limits count all IPv6 addresses of one /64 network as one client */
export function clientKeyOf(identity: Identity, address: string): ClientKey {
  return identity.kind === 'user' ? identity.user.id : rateLimitKey(address)
}
