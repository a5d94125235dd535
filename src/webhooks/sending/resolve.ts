// Names to addresses, without a thread of libuv's pool: a black-holed name server must not stall password hashes.
import { lookup, Resolver } from 'node:dns/promises'
import { readHosts } from './hosts-file.ts'

/** All addresses of a name in punycode; failures of every kind are `unresolved`. Settles within 2 s. */
export type Resolve = (name: string) => Promise<readonly string[] | 'unresolved'>

export interface ResolverOptions {
  /** `webhooks.allow_private_networks`: the system's own look-up, which knows closed networks' search domains. */
  readonly allowPrivate: boolean
  /** Name servers as `address[:port]`; without them the system's. */
  readonly servers?: readonly string[]
  readonly hostsFile?: string
}

/** Milliseconds for one look-up in all, and for c-ares' first try of its two. */
const lookupTimeoutMs = 2_000
const firstTryTimeoutMs = 700

export function createResolver(options: ResolverOptions): Resolve {
  const { allowPrivate, servers, hostsFile = '/etc/hosts' } = options
  // `dns.lookup` waits for a thread of the pool, and holds it while a name server is silent.
  if (allowPrivate) return async name => orUnresolved(await addressesOrNone(systemLookup(name)))
  const resolver = new Resolver({ timeout: firstTryTimeoutMs, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return async name => {
    // RFC 6761 §6.3: never asked of a name server.
    if (/(?:^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1']
    const local = readHosts(hostsFile, name)
    if (local.length > 0) return local
    // One that fails takes nothing from the other: many names have but one kind, some servers know but one.
    const answers = await Promise.all([
      addressesOrNone(resolver.resolve4(name)),
      addressesOrNone(resolver.resolve6(name)),
    ])
    return orUnresolved(answers.flat())
  }
}

async function systemLookup(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true })
  return found.map(({ address }) => address)
}

function orUnresolved(addresses: readonly string[]): readonly string[] | 'unresolved' {
  return addresses.length === 0 ? 'unresolved' : addresses
}

/** None, where it fails or takes too long. */
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
