// Finds IPv4 addresses inside IPv6 addresses: mapped, NAT64, 6to4, Teredo, ISATAP.
import ipaddr from 'ipaddr.js'

/** Returns the IPv4 addresses that packets to this address would reach. */
export function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const { parts } = address
  const found: ipaddr.IPv4[] = []
  const range = address.range()
  if (range === 'ipv4Mapped') found.push(ipv4(parts, 6))
  // The local-use prefix 64:ff9b:1::/48 is left out, because each network chooses the position of the IPv4 address in
  // it. No address with this prefix is public (RFC 8215).
  if (range === 'rfc6052' && parts[2] === 0) found.push(ipv4(parts, 6))
  if (range === '6to4') found.push(ipv4(parts, 1))
  // Teredo contains the address of its server, and the client's address with inverted bits (RFC 4380 §4).
  if (range === 'teredo') found.push(ipv4(parts, 2), ipv4(parts, 6, 0xffff))
  // ISATAP is an interface identifier under any prefix (RFC 5214 §6.1). Two of its bits can have any value.
  if (((parts[4] ?? 0) & 0xfcff) === 0 && parts[5] === 0x5efe) found.push(ipv4(parts, 6))
  return found
}

function ipv4(parts: readonly number[], from: number, mask = 0): ipaddr.IPv4 {
  const [high = 0, low = 0] = parts.slice(from, from + 2).map(part => part ^ mask)
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}
