// Decides which addresses are on the public Internet and may receive users' webhooks.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { embeddedIPv4 } from '../../http/embedded-ipv4.ts'

/**
 * Returns whether an address is global unicast, according to IANA's special-purpose registries. An IPv6 address with
 * embedded IPv4 addresses (mapped, NAT64, 6to4, Teredo, ISATAP) is public only if every embedded address is public.
 * Invalid text is not public.
 * @param address in the format of sockets and name servers: dotted decimal, or IPv6 without brackets
 */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return isPublicIPv4(ipaddr.IPv4.parse(address))
    case 6:
      // An address with a zone is not public, because the zone is an interface of this machine (RFC 4007).
      return !address.includes('%') && isPublicIPv6(ipaddr.IPv6.parse(address))
    default:
      return false
  }
}

/**
 * In Azure, VMs reach their host agent at this address, and the agent can return secrets. Outside Azure, this is an
 * ordinary public address.
 */
const azureHost = '168.63.129.16'

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && address.toString() !== azureHost
}

/**
 * The block that IANA has allocated for global unicast. The library also reports addresses outside this block as
 * unicast.
 */
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
