// Resolves names without a thread of libuv's pool: an unresponsive name server must not stall password hashes.
import { lookup, Resolver } from 'node:dns/promises'
import { readHosts } from './hosts-file.ts'

/** All addresses of a name in punycode; every kind of failure is `unresolved`. Settles within 2 s. */
export type Resolve = (name: string) => Promise<readonly string[] | 'unresolved'>

export interface ResolverOptions {
  /** `webhooks.allow_private_networks`: the system's resolver, which knows closed networks' search domains. */
  readonly allowPrivate: boolean
  /** Name servers as `address[:port]`; default: the system's. */
  readonly servers?: readonly string[]
  readonly hostsFile?: string
}

/** For a whole lookup, and for the first of c-ares' two attempts. */
const lookupTimeoutMs = 2_000
const firstTryTimeoutMs = 700

export function createResolver(options: ResolverOptions): Resolve {
  const { allowPrivate, servers, hostsFile = '/etc/hosts' } = options
  // `dns.lookup` takes a thread of the pool, and holds it while a name server is silent.
  if (allowPrivate) return async name => orUnresolved(await addressesOrNone(systemLookup(name)))
  const resolver = new Resolver({ timeout: firstTryTimeoutMs, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return async name => {
    // RFC 6761 §6.3: must not be sent to a name server.
    if (/(?:^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1']
    const local = readHosts(hostsFile, name)
    if (local.length > 0) return local
    // The record types fail independently: many names have only one, and some servers support only one.
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
