// Resolves a webhook's host and checks that its addresses are allowed: at registration and again at each delivery.
import { isIP } from 'node:net'
import { isPublic } from './public-address.ts'
import type { Resolve } from './resolve.ts'
import { hostOf } from './webhook-url.ts'

export type Destination =
  | { readonly kind: 'found'; readonly addresses: readonly string[] }
  /** At this moment; such a webhook may still be registered (CONTRACT §5). */
  | { readonly kind: 'unresolved' }
  /** `address` is an address of the host that is not public. */
  | { readonly kind: 'forbidden'; readonly address: string }

export interface DestinationRules {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
}

/**
 * A single non-public address forbids the host: otherwise the name server would choose which one is connected to.
 * @param url as returned by `parseWebhookUrl`
 */
export async function findDestination(
  url: URL,
  { resolve, allowPrivate }: DestinationRules,
): Promise<Destination> {
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  if (addresses === 'unresolved') return { kind: 'unresolved' }
  const forbidden = allowPrivate ? undefined : addresses.find(address => !isPublic(address))
  return forbidden === undefined ? { kind: 'found', addresses } : { kind: 'forbidden', address: forbidden }
}
