// Where a webhook's host is, and whether we may send there: asked when it is saved and again at each delivery.
import { isIP } from 'node:net'
import { isPublic } from './public-address.ts'
import type { Resolve } from './resolve.ts'
import { hostOf } from './webhook-url.ts'

export type Destination =
  | { readonly kind: 'found'; readonly addresses: readonly string[] }
  /** At the time; a webhook may be saved so (CONTRACT §5). */
  | { readonly kind: 'unresolved' }
  /** `address` is one of the host's, and not public. */
  | { readonly kind: 'forbidden'; readonly address: string }

export interface DestinationRules {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
}

/**
 * One address that is not public forbids the host: which of them is connected to would be the name server's choice.
 * @param url as `readWebhookUrl` returned it
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
