// The IANA special-purpose registries define which addresses are public. An IPv6 address that contains an IPv4 address
// is public only if the contained address is public.
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { isPublic } from '../../../src/webhooks/address/public-address.ts'

const hex = (high: number, low: number) => ((high << 8) | low).toString(16)

/** Ways to embed an IPv4 address in an IPv6 address. The IPv6 address is public if the embedded address is public. */
const wrappings: Record<string, (octets: number[]) => string> = {
  mapped: ([a = 0, b = 0, c = 0, d = 0]) => `::ffff:${hex(a, b)}:${hex(c, d)}`,
  NAT64: ([a = 0, b = 0, c = 0, d = 0]) => `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
  '6to4': ([a = 0, b = 0, c = 0, d = 0]) => `2002:${hex(a, b)}:${hex(c, d)}::1`,
  ISATAP: ([a = 0, b = 0, c = 0, d = 0]) => `2606:4700:1:2:0200:5efe:${hex(a, b)}:${hex(c, d)}`,
  'Teredo server': ([a = 0, b = 0, c = 0, d = 0]) =>
    `2001:0:${hex(a, b)}:${hex(c, d)}:8000:63bf:${hex(8 ^ 255, 8 ^ 255)}:${hex(8 ^ 255, 8 ^ 255)}`,
  'Teredo client': ([a = 0, b = 0, c = 0, d = 0]) =>
    `2001:0:808:808:8000:63bf:${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`,
}
const neverPublic: typeof wrappings = {
  compatible: ([a = 0, b = 0, c = 0, d = 0]) => `::${hex(a, b)}:${hex(c, d)}`,
  translated: ([a = 0, b = 0, c = 0, d = 0]) => `::ffff:0:${hex(a, b)}:${hex(c, d)}`,
  'local NAT64': ([a = 0, b = 0, c = 0, d = 0]) => `64:ff9b:1::${hex(a, b)}:${hex(c, d)}`,
}

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
const privateOctets = fc.oneof(
  octets.map(([, b, c, d]) => [10, b, c, d]),
  octets.map(([, b, c, d]) => [127, b, c, d]),
  octets.map(([, , c, d]) => [192, 168, c, d]),
  octets.map(([, , c, d]) => [169, 254, c, d]),
  octets.map(([, b, c, d]) => [172, 16 + (b % 16), c, d]),
  octets.map(([, b, c, d]) => [100, 64 + (b % 64), c, d]),
  octets.map(([, b, c, d]) => [198, 18 + (b % 2), c, d]),
  octets.map(([a, b, c, d]) => [224 + (a % 32), b, c, d]),
  octets.map(([, b, c, d]) => [0, b, c, d]),
)

describe('an address', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700::1111',
    '2001:4860:4860::8888',
    '2a00:1450:4007:80e::2004',
    '2620:0:1::1',
  ])('is public: %s', address => {
    expect(isPublic(address)).toBe(true)
  })

  it.each([
    ['this network', '0.0.0.0', '0.255.255.255'],
    [
      'private',
      '10.0.0.0',
      '10.255.255.255',
      '172.16.0.0',
      '172.31.255.255',
      '192.168.0.0',
      '192.168.255.255',
    ],
    ['shared', '100.64.0.0', '100.127.255.255', '100.100.100.200'],
    ['loopback', '127.0.0.0', '127.255.255.255', '::1'],
    ['link-local', '169.254.0.0', '169.254.169.254', '169.254.255.255', 'fe80::1', 'febf:ffff::'],
    [
      'protocol assignments',
      '192.0.0.0',
      '192.0.0.192',
      '192.0.0.255',
      '2001::',
      '2001:1::1',
      '2001:1ff:ffff::',
    ],
    [
      'documentation',
      '192.0.2.1',
      '198.51.100.1',
      '203.0.113.1',
      '2001:db8::',
      '3fff::1',
      '3fff:fff:ffff::1',
    ],
    ['6to4 relays', '192.88.99.1'],
    ['benchmarking', '198.18.0.0', '198.19.255.255', '2001:2::1'],
    ['multicast', '224.0.0.0', '239.255.255.255', 'ff02::1', 'ff0e::1'],
    ['reserved', '240.0.0.0', '255.255.255.254', '255.255.255.255'],
    ['unspecified', '::', '0:0:0:0:0:0:0:0'],
    ['unique local', 'fc00::1', 'fd00:ec2::254', 'fdff:ffff::'],
    ['site-local', 'fec0::1', 'feff::1'],
    ['discard-only', '100::', '100::ffff:ffff:ffff:ffff'],
    ['segment routing', '5f00::1'],
    ['ORCHID', '2001:10::1', '2001:20::1'],
    ['not allocated', '100:0:0:1::1', '200::1', '1fff::1', '4000::1', '6000::1', 'e000::1', 'fe00::1'],
    ['with a zone', 'fe80::1%eth0', '2606:4700::1111%1'],
    ['the host of an Azure machine', '168.63.129.16', '::ffff:168.63.129.16'],
  ])('is not public: %s', (_, ...addresses) => {
    expect(addresses.filter(isPublic)).toEqual([])
  })

  it.each([
    '',
    'x',
    '1',
    '8.8.8',
    '8.8.8.8.',
    ' 8.8.8.8',
    '08.8.8.8',
    '0x8.8.8.8',
    '8.8.8.8:80',
    '[2606::1]',
    '8.8.8.8/32',
  ])('is not public if it is not a valid address: "%s"', text => {
    expect(isPublic(text)).toBe(false)
  })

  it.each(Object.entries(wrappings))(
    'is public if and only if the embedded address is public: %s',
    (_, wrap) => {
      fc.assert(
        fc.property(octets, inner => {
          expect(isPublic(wrap(inner))).toBe(isPublic(inner.join('.')))
        }),
      )
      fc.assert(
        fc.property(privateOctets, inner => {
          expect(isPublic(wrap(inner as number[]))).toBe(false)
        }),
      )
      expect(isPublic(wrap([8, 8, 8, 8]))).toBe(true)
    },
  )

  it.each(Object.entries(neverPublic))('is never public if it embeds IPv4 in this form: %s', (_, wrap) => {
    fc.assert(
      fc.property(octets, inner => {
        expect(isPublic(wrap(inner))).toBe(false)
      }),
    )
  })

  it('is classified in the same way in every IPv6 notation', () => {
    const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 })
    const bytes = fc.oneof(
      sixteen,
      fc
        .tuple(
          sixteen,
          fc.constantFrom('::ffff:0:0', '64:ff9b::', '2002::', '2001::', '2001:db8::', 'fc00::', '2600::'),
        )
        .map(([tail, prefix]) => {
          const head = ipaddr.IPv6.parse(prefix).toByteArray()
          return tail.map((byte, index) => (index < 4 ? (head[index] ?? 0) : byte))
        }),
    )
    fc.assert(
      fc.property(bytes, array => {
        const address = new ipaddr.IPv6([...array])
        const written = address.toNormalizedString()
        const inDots = `${written.split(':').slice(0, 6).join(':')}:${[...array].slice(12).join('.')}`
        const spellings = [
          written,
          inDots,
          written.toUpperCase(),
          address.toString(),
          address.toRFC5952String(),
        ]
        expect(new Set(spellings.map(isPublic)).size).toBe(1)
      }),
    )
  })
})
