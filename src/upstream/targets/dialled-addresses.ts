// Filters and sorts the addresses of a target's name. See docs/configuration.md#names-with-several-addresses.
import ipaddr from 'ipaddr.js'
import { embeddedIPv4 } from '../../http/embedded-ipv4.ts'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/**
 * The forbidden addresses: link-local addresses, unspecified addresses, and addresses where a cloud gives its machines
 * their credentials.
 */
const refused: readonly Range[] = [
  '169.254.0.0/16',
  '0.0.0.0/32',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fe80::/10',
  '::/128',
  'fd00:ec2::254/128',
].map(range => ipaddr.parseCIDR(range))

/** @param address an address from the system's lookup; an IPv6 address may have a zone */
export function mayBeDialled(address: string): boolean {
  const [bare = ''] = address.split('%')
  const parsed = ipaddr.parse(bare)
  const reached = parsed instanceof ipaddr.IPv6 ? [parsed, ...embeddedIPv4(parsed)] : [parsed]
  return !reached.some(one =>
    refused.some(([network, bits]) => one.kind() === network.kind() && one.match([network, bits])),
  )
}

/** Sorts in the numeric order of the bytes, IPv4 first, and removes duplicates. */
export function sortAddresses(addresses: readonly string[]): string[] {
  const byBytes = new Map(
    addresses.map(address => [bytesOf(address), address]).toReversed() as [string, string][],
  )
  return [...byBytes.keys()].sort().map(bytes => byBytes.get(bytes) ?? '')
}

/**
 * Returns the bytes as hexadecimal text. All IPv4 texts have the same length, and all IPv6 texts too. So the texts sort
 * like the numbers.
 */
function bytesOf(address: string): string {
  const [bare = '', zone = ''] = address.split('%')
  const bytes = ipaddr.parse(bare).toByteArray()
  return `${bytes.length === 4 ? 4 : 6}${bytes.map(byte => byte.toString(16).padStart(2, '0')).join('')}%${zone}`
}
