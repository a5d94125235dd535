// The key that limits count a client by.
import { rateLimitKey } from '../http/client-address.ts'
import type { Identity } from './identity.ts'

/** A user's id, or an anonymous client's address. An address contains a dot or a colon, so the two never collide. */
export type ClientKey = number | string

/** @param address of the client; limits count an IPv6 address by its /64 */
export function clientKeyOf(identity: Identity, address: string): ClientKey {
  return identity.kind === 'user' ? identity.user.id : rateLimitKey(address)
}
