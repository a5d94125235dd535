// The client's address behind proxies: the rightmost one that is not a trusted proxy's (CONTRACT §6).
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'
import type { Counters } from '../observability/metrics/counters.ts'

type Address = ReturnType<typeof ipaddr.process>
type Range = readonly [Address, number]

export interface TrustedProxies {
  /** Whether this peer's `X-Forwarded-*` headers are trusted. */
  trusts(address: string): boolean
  /**
   * The address of the client behind a trusted peer.
   * @param peer the socket's address
   * @param forwardedFor the `X-Forwarded-For` values as received, in order
   */
  clientOf(peer: string, forwardedFor: string): string
  /** As `clientOf`, but `undefined` if a trusted peer sent an address that cannot be parsed: the client is unknown then. */
  knownClientOf(peer: string, forwardedFor: string): string | undefined
}

/** @param cidrs `server.trusted_proxies`: CIDRs or single addresses */
export function createTrustedProxies(cidrs: readonly string[]): TrustedProxies {
  const trusts = createNetworks(cidrs)
  const follow = (peer: string, forwardedFor: string) => {
    let client = normalizeAddress(peer)
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!trusts(client)) break
      const address = readAddress(hop.trim())
      // No trusted proxy wrote an invalid address: the last known hop is the client.
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
 * Whether an address is in one of the networks; text that is no address is in none.
 * @param cidrs CIDRs or single addresses
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

/** An address as it is logged and forwarded: IPv4-mapped IPv6 becomes IPv4. */
export function normalizeAddress(text: string): string {
  return text.startsWith('::ffff:') ? (readAddress(text)?.toString() ?? text) : text
}

/** The key that limits count by: the IPv4 address, or the /64 of an IPv6 address (CONTRACT §2, `rate_limits`). */
export function rateLimitKey(client: string): string {
  // Every proxied request of an anonymous client comes here: an IPv4 address is its own key.
  if (!client.includes(':')) return client
  let key = networks.get(client)
  if (key === undefined) {
    key = networkOf(client)
    if (networks.size >= maxNetworks) networks.clear()
    networks.set(client, key)
  }
  return key
}

/** By IPv6 address: to parse one takes as long as a tenth of a request. */
const networks = new Map<string, string>()
const maxNetworks = 1_000

function networkOf(client: string): string {
  const address = readAddress(client)
  if (address === undefined || address.kind() === 'ipv4') return client
  const parts = (address as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map(part => part.toString(16)).join(':')}::/64`
}

/** Whether an address belongs to a network that is not routed publicly. */
export function isPrivate(text: string): boolean {
  const range = readAddress(text)?.range()
  return range !== undefined && range !== 'unicast'
}

const ipv4Compatible = /^::\d+\./

function readAddress(text: string): Address | undefined {
  // Some load balancers append a port to the address.
  const bare =
    /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  // ipaddr.js alone would read the end of `::ffff:010.0.0.1` as octal numbers, where others read none or decimal ones,
  // and take `::10.0.0.1`, an IPv6 address of its own (RFC 4291 §2.5.5.1), for 10.0.0.1.
  if (ipv4Compatible.test(bare)) return undefined
  return isIP(bare) !== 0 && ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

function readRange(cidr: string): Range {
  if (cidr.includes('/')) return ipaddr.parseCIDR(cidr) as Range
  const address = ipaddr.process(cidr)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * A load balancer that is missing from `trusted_proxies` is counted at every request, and logged once (CONTRACT §3).
 * @returns call it with the peer of each such request
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
      'X-Forwarded-For from a private address that is not in server.trusted_proxies: its clients share one rate limit',
    )
  }
}
