// Finds the address of a client behind proxies. It is the rightmost address in `X-Forwarded-For` that does not belong
// to a trusted proxy.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'
import type { Counters } from '../observability/metrics/counters.ts'

type Address = ReturnType<typeof ipaddr.process>
type Range = readonly [Address, number]

export interface TrustedProxies {
  /** Returns whether this peer's `X-Forwarded-*` headers are trusted. */
  trusts(address: string): boolean
  /**
   * Returns the address of the client behind a trusted peer.
   * @param forwardedFor the `X-Forwarded-For` values as received, in order
   */
  clientOf(peer: string, forwardedFor: string): string
  /** Like `clientOf`, but returns `undefined` if a trusted proxy sent an invalid address, so the client is unknown. */
  knownClientOf(peer: string, forwardedFor: string): string | undefined
}

/** @param cidrs the CIDRs and addresses of `server.trusted_proxies` */
export function createTrustedProxies(cidrs: readonly string[]): TrustedProxies {
  const trusts = createNetworks(cidrs)
  const follow = (peer: string, forwardedFor: string) => {
    let client = normalizeAddress(peer)
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!trusts(client)) break
      const address = readAddress(hop.trim())
      // An invalid or missing address ends the chain. The last valid address then counts as the client.
      if (address === undefined) return { client, isKnown: forwardedFor.trim() === '' }
      client = address.toString()
    }
    return { client, isKnown: true }
  }
  return {
    trusts,
    clientOf: (peer, forwardedFor) => follow(peer, forwardedFor).client,
    knownClientOf(peer, forwardedFor) {
      const { client, isKnown } = follow(peer, forwardedFor)
      return isKnown ? client : undefined
    },
  }
}

/**
 * Creates a function that returns whether an address is in one of the networks. It returns false for an invalid
 * address.
 * @param cidrs the CIDRs or single addresses
 */
export function createNetworks(cidrs: readonly string[]): (address: string) => boolean {
  const ranges = cidrs.map(readRange)
  return text => {
    if (ranges.length === 0) return false
    const address = readAddress(text)
    if (address === undefined) return false
    return ranges.some(
      ([base, bits]) => base.kind() === address.kind() && address.match([base, bits] as never),
    )
  }
}

/** Returns the address for logs and for forwarding. An IPv4-mapped IPv6 address is changed to its IPv4 address. */
export function normalizeAddress(text: string): string {
  return text.startsWith('::ffff:') ? (readAddress(text)?.toString() ?? text) : text
}

/** Returns the key for rate limits: the IPv4 address, or the /64 network of an IPv6 address. */
export function rateLimitKey(client: string): string {
  // This runs for every request of an anonymous client, so IPv4 returns early.
  if (!client.includes(':')) return client
  let key = networks.get(client)
  if (key === undefined) {
    key = networkOf(client)
    if (networks.size >= maxNetworks) networks.clear()
    networks.set(client, key)
  }
  return key
}

/** Caches the keys of IPv6 addresses, because parsing an address takes a tenth of the time of a request. */
const networks = new Map<string, string>()
const maxNetworks = 1_000

function networkOf(client: string): string {
  const address = readAddress(client)
  if (address === undefined || address.kind() === 'ipv4') return client
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map(part => part.toString(16)).join(':')}::/64`
}

/** Returns whether the address is private, which means that the public Internet does not route it. */
export function isPrivate(text: string): boolean {
  const range = readAddress(text)?.range()
  return range !== undefined && range !== 'unicast'
}

const ipv4Compatible = /^::\d+\./

function readAddress(text: string): Address | undefined {
  // Some load balancers append a port to the address.
  const bare =
    /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  // ipaddr.js would read `010` in `::ffff:010.0.0.1` as an octal number. Other programs reject it or read a decimal
  // number. ipaddr.js would also read `::10.0.0.1`, which is an IPv6 address (RFC 4291 §2.5.5.1), as 10.0.0.1.
  if (ipv4Compatible.test(bare)) return undefined
  return isIP(bare) !== 0 && ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

function readRange(cidr: string): Range {
  if (cidr.includes('/')) return ipaddr.parseCIDR(cidr) as Range
  const address = ipaddr.process(cidr)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Counts requests from load balancers that are missing from `trusted_proxies`. Logs a warning for the first request.
 */
export function createForwarderNotice(
  counters: Pick<Counters, 'untrustedForwarders'>,
  logger: Logger,
): (peer: string) => void {
  let warned = false
  return peer => {
    counters.untrustedForwarders += 1
    if (warned) return
    warned = true
    logger.warn(
      { peer },
      'X-Forwarded-For ignored; the peer is not in server.trusted_proxies, so its clients share one rate limit',
    )
  }
}
