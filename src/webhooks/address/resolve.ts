// Resolves a webhook's host and checks that its addresses are allowed, at registration and again at each delivery.
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublic } from './public-address.ts'
import { hostOf } from './webhook-url.ts'

type Destination =
  | { readonly kind: 'found'; readonly addresses: readonly string[] }
  /** The name has no address at this moment. The webhook may still be registered. */
  | { readonly kind: 'unresolved' }
  /** `address` is a non-public address of the host. */
  | { readonly kind: 'forbidden'; readonly address: string }

export interface DestinationRules {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
}

/**
 * Finds the addresses of the host. If even one address is not public, the host is forbidden. Otherwise, the owner of
 * the host name could make the gateway connect to this address.
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

/** Returns all addresses of a host name in punycode; `unresolved` if the lookup fails. Settles within 2 s. */
export type Resolve = (name: string) => Promise<readonly string[] | 'unresolved'>

interface ResolverOptions {
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
  /** Name servers as `address[:port]`, by default the system's name servers. */
  readonly servers?: readonly string[]
}

/** The time limit of a whole lookup, and the time limit of the first of the two attempts that c-ares makes. */
const lookupTimeoutMs = 2_000
const firstTryTimeoutMs = 700

/**
 * Creates a resolver. Users choose the host names, and the name server of a host may respond slowly on purpose.
 * `dns.lookup` would then block a thread of libuv's pool, which would delay password hashes and the lookups of
 * upstreams. So the gateway queries the name servers itself and does not read the hosts file. With `allowPrivate`, the
 * operator trusts the users, so the gateway uses the system's lookup. This lookup also finds names in the hosts file
 * and in search domains.
 */
export function createResolver(options: ResolverOptions): Resolve {
  const { allowPrivate, servers } = options
  if (allowPrivate) {
    const systemLookup = createSystemLookup()
    return async name => orUnresolved(await addressesOrNone(systemLookup(name)))
  }
  const resolver = new Resolver({ timeout: firstTryTimeoutMs, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return async name => {
    // These names must not be sent to a name server (RFC 6761 §6.3).
    if (/(?:^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1']
    // A and AAAA records are looked up separately, because one lookup can fail while the other succeeds. Many names
    // have only one of these types, and some servers support only one.
    const answers = await Promise.all([
      addressesOrNone(resolver.resolve4(name)),
      addressesOrNone(resolver.resolve6(name)),
    ])
    return orUnresolved(answers.flat())
  }
}

/**
 * Runs at most one lookup per name at a time. Without this limit, a name whose lookup hangs could occupy all threads of
 * the pool.
 */
function createSystemLookup(): (name: string) => Promise<string[]> {
  const running = new Map<string, Promise<string[]>>()
  return name => {
    const current = running.get(name)
    if (current !== undefined) return current
    const started = lookup(name, { all: true })
      .then(found => found.map(({ address }) => address))
      .finally(() => running.delete(name))
    running.set(name, started)
    return started
  }
}

function orUnresolved(addresses: readonly string[]): readonly string[] | 'unresolved' {
  return addresses.length === 0 ? 'unresolved' : addresses
}

/** Returns an empty list if the lookup fails or takes too long. */
function addressesOrNone(lookup: Promise<string[]>): Promise<string[]> {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve([]), lookupTimeoutMs)
    lookup
      .catch(() => [])
      .then(addresses => {
        clearTimeout(timer)
        resolve(addresses)
      })
  })
}
