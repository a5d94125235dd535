// Which of a name's addresses are dialled, and in which order they are named (CONTRACT §11).
import ipaddr from 'ipaddr.js'
import { embeddedIPv4 } from '../../http/embedded-ipv4.ts'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Link-local and unspecified addresses, and those where clouds serve a machine its credentials. */
const refused: readonly Range[] = [
  '169.254.0.0/16',
  '0.0.0.0/32',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fe80::/10',
  '::/128',
  'fd00:ec2::254/128',
].map(range => ipaddr.parseCIDR(range))

/** @param address as the system's look-up writes it; IPv6 may have a zone */
export function mayBeDialled(address: string): boolean {
  const [bare = ''] = address.split('%')
  const parsed = ipaddr.parse(bare)
  const reached = parsed instanceof ipaddr.IPv6 ? [parsed, ...embeddedIPv4(parsed)] : [parsed]
  return !reached.some(one =>
    refused.some(([network, bits]) => one.kind() === network.kind() && one.match([network, bits])),
  )
}

/** In numeric order of their bytes, IPv4 first, each once. */
export function sortAddresses(addresses: readonly string[]): string[] {
  const byBytes = new Map(
    addresses.map(address => [bytesOf(address), address]).toReversed() as [string, string][],
  )
  return [...byBytes.keys()].sort().map(bytes => byBytes.get(bytes) ?? '')
}

/** Hexadecimal of one length for each family, so that text sorts as numbers do. */
function bytesOf(address: string): string {
  const [bare = '', zone = ''] = address.split('%')
  const bytes = ipaddr.parse(bare).toByteArray()
  return `${bytes.length === 4 ? 4 : 6}${bytes.map(byte => byte.toString(16).padStart(2, '0')).join('')}%${zone}`
}
