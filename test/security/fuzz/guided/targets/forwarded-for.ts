// In X-Forwarded-For, the client is the rightmost address that is not a trusted proxy. Text to the left of this address
// must not change the result.
import { BlockList, isIP } from 'node:net'
import { createTrustedProxies, rateLimitKey } from '../../../../../src/http/client-address.ts'
import { promise, type Target } from '../target.ts'

const trusted = ['10.0.0.0/8', '2001:db8:1::/48', '192.168.7.7']
const proxies = createTrustedProxies(trusted)
const peer = '10.0.0.1'
const stranger = '203.0.113.9'

/** The trusted networks as a BlockList of node:net. The target compares the decisions of the gateway with this list. */
const networks = new BlockList()
networks.addSubnet('10.0.0.0', 8, 'ipv4')
networks.addSubnet('2001:db8:1::', 48, 'ipv6')
networks.addAddress('192.168.7.7')

export const forwardedFor: Target = {
  seeds: [
    ...[
      '203.0.113.9',
      '1.2.3.4, 10.0.0.2',
      '1.2.3.4,2001:db8:1::7,10.9.9.9',
      '[2001:db8::1]:4711, 10.0.0.3',
      '',
    ],
    ...[
      '::ffff:10.0.0.2, 10.0.0.1',
      '1.2.3.4:80',
      'unknown, 10.0.0.1',
      '_hidden',
      '010.0.0.1',
      '10.0.0.1, , 10.0.0.2',
    ],
    ...[
      'fe80::1%eth0',
      '0x0a.0.0.1',
      '::',
      '::ffff:0a00:0001',
      '64:ff9b::10.0.0.1',
      '127.1',
      '1.2.3.4 10.0.0.1',
    ],
  ],
  dictionary: [
    ...[
      '10.0.0.2',
      '192.168.7.7',
      '203.0.113.9',
      '2001:db8:1::7',
      '::ffff:',
      '[',
      ']',
      ':80',
      ', ',
      ',',
      '::',
      '%eth0',
    ],
    ...[
      '0x',
      '0',
      '256',
      '\t',
      '::ffff:a00:1',
      '2002:a00:1::',
      '10.1',
      '167772161',
      '127.0.0.1',
      '::1',
      '0:0:0:0:0',
    ],
  ],
  maxLength: 300,
  maxMs: 50,
  covers: /\/src\/http\/client-address|ipaddr/,
  run(input) {
    const client = proxies.clientOf(peer, input)
    promise(isIP(client) !== 0, 'returns a client that is not an IP address', client)
    promise(client === proxies.clientOf(peer, input), 'returns a different client the second time')
    // A client can send X-Forwarded-For itself. So the text to the left of the rightmost untrusted address may be
    // forged.
    promise(
      proxies.clientOf(peer, `${input},${stranger}`) === stranger,
      'trusts an address to the left of an untrusted address',
    )
    promise(proxies.clientOf(stranger, input) === stranger, 'trusts an untrusted peer')
    const hops = input.split(',').map(hop => hop.trim())
    const passed = hops.length - 1 - hops.findLastIndex(hop => !isTrusted(hop))
    const expected = addressOf(hops[hops.length - 1 - passed] ?? '')
    // The client is the first untrusted hop from the right. If that hop is not an address, the client is the trusted
    // hop to its right.
    const before = passed === 0 ? peer : addressOf(hops[hops.length - passed] ?? '')
    promise(
      canonical(client) === canonical(expected ?? before ?? ''),
      'returns a different client than the comparison with node:net',
      client,
      expected ?? before,
    )
    const key = rateLimitKey(client)
    if (isIP(client) === 4)
      promise(key === client, 'uses a rate limit key that is not the IPv4 address', client, key)
    else {
      const first = key.replace('::/64', '')
      promise(
        /^(?:[0-9a-f]{1,4}:){3}[0-9a-f]{1,4}::\/64$/.test(key),
        'uses a rate limit key that is not a /64',
        client,
        key,
      )
      const low = rateLimitKey(`${first}::`)
      promise(
        low === key && rateLimitKey(`${first}:ffff:ffff:ffff:ffff`) === key,
        'uses two rate limit keys for one /64',
        key,
        low,
      )
    }
    return `${passed > 3 ? 'many' : passed} trusted, then ${expected === undefined ? 'nothing' : `IPv${isIP(client)}`}`
  },
}

/** Returns the address of a hop without port and brackets, or undefined if it is not an address. */
function addressOf(hop: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
  // node:net accepts the deprecated form `::1.2.3.4`, and zones with characters other than letters and digits. The
  // gateway refuses both.
  return isIP(bare) === 0 || /%(?![0-9A-Za-z]+$)|^::\d+\./.test(bare) ? undefined : bare
}

function isTrusted(hop: string): boolean {
  const address = addressOf(hop)
  if (address === undefined) return false
  const plain = canonical(address)
  return networks.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6')
}

/** Returns the address as a URL parser spells it. An IPv4-mapped address becomes an IPv4 address. */
function canonical(address: string): string {
  if (isIP(address) !== 6) return address
  const [bare = ''] = address.split('%', 1)
  const short = new URL(`http://[${bare}]/`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(short) ?? []
  if (high === undefined || low === undefined) return short
  const [one, two] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return `${one >> 8}.${one & 255}.${two >> 8}.${two & 255}`
}
