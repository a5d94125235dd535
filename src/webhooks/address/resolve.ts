// Resolves a webhook's host and checks that its addresses are allowed: at registration and again at each delivery.
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublic } from './public-address.ts'
import { hostOf } from './webhook-url.ts'

type Destination =
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

/** All addresses of a name in punycode; every kind of failure is `unresolved`. Settles within 2 s. */
export type Resolve = (name: string) => Promise<readonly string[] | 'unresolved'>

interface ResolverOptions {
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
  /** Name servers as `address[:port]`; default: the system's. */
  readonly servers?: readonly string[]
}

/** For a whole lookup, and for the first of c-ares' two attempts. */
const lookupTimeoutMs = 2_000
const firstTryTimeoutMs = 700

/**
 * A user chooses the name, so its name server may be silent on purpose. `dns.lookup` would hold a thread of libuv's pool
 * meanwhile, and would delay password hashes and the look-ups of upstreams. The gateway therefore asks the name servers
 * itself, and the hosts file does not count. With `allowPrivate` the operator trusts the users, and the system's look-up
 * finds the names of the hosts file and of search domains.
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
    // RFC 6761 §6.3: must not be sent to a name server.
    if (/(?:^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1']
    // The record types fail independently: many names have only one, and some servers support only one.
    const answers = await Promise.all([
      addressesOrNone(resolver.resolve4(name)),
      addressesOrNone(resolver.resolve6(name)),
    ])
    return orUnresolved(answers.flat())
  }
}

/** One look-up of a name at a time: those of a name that hangs would take all threads of the pool. */
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

/** Empty when it fails or takes too long. */
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
