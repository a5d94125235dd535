// Decides which addresses are on the public Internet, and so may receive users' webhooks (CONTRACT §5).
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether an address is global unicast, by IANA's special-purpose registries. IPv4 embedded in IPv6 (mapped, NAT64,
 * 6to4, Teredo, ISATAP) is public only if every embedded address is; text that is no address is not public.
 * @param address as sockets and name servers write it: dotted decimal, or IPv6 without brackets
 */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return isPublicIPv4(ipaddr.IPv4.parse(address))
    case 6:
      // A zone names an interface of this machine (RFC 4007).
      return !address.includes('%') && isPublicIPv6(ipaddr.IPv6.parse(address))
    default:
      return false
  }
}

/** Azure's VMs reach their host agent, and its secrets, at this otherwise ordinary public address. */
const azureHost = '168.63.129.16'

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && address.toString() !== azureHost
}

/** What IANA has allocated for unicast; the library also reports unallocated space as unicast. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

function isPublicIPv6(address: ipaddr.IPv6): boolean {
  const embedded = embeddedIPv4(address)
  if (!embedded.every(isPublicIPv4)) return false
  switch (address.range()) {
    case 'unicast':
      return address.match(globalUnicast)
    case 'ipv4Mapped':
    case 'rfc6052':
    case '6to4':
    case 'teredo':
      return embedded.length > 0
    default:
      return false
  }
}

/** The IPv4 addresses that packets to this address would reach. */
function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const { parts } = address
  const found: ipaddr.IPv4[] = []
  const range = address.range()
  if (range === 'ipv4Mapped') found.push(ipv4(parts, 6))
  // The local-use prefix 64:ff9b:1::/48 places the IPv4 where each network chooses (RFC 8215): never public.
  if (range === 'rfc6052' && parts[2] === 0) found.push(ipv4(parts, 6))
  if (range === '6to4') found.push(ipv4(parts, 1))
  // The server, and the client with inverted bits (RFC 4380 §4).
  if (range === 'teredo') found.push(ipv4(parts, 2), ipv4(parts, 6, 0xffff))
  // ISATAP is an interface identifier under any prefix (RFC 5214 §6.1); two of its bits may vary.
  if (((parts[4] ?? 0) & 0xfcff) === 0 && parts[5] === 0x5efe) found.push(ipv4(parts, 6))
  return found
}

function ipv4(parts: readonly number[], from: number, mask = 0): ipaddr.IPv4 {
  const [high = 0, low = 0] = parts.slice(from, from + 2).map(part => part ^ mask)
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}
