// Tests which address of a client is used for rate limits and logs.
import { describe, expect, it } from 'vitest'
import { createTrustedProxies, normalizeAddress, rateLimitKey } from '../../src/http/client-address.ts'

describe('client addresses', () => {
  const proxies = createTrustedProxies(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'])

  it.each([
    ['10.1.2.3', '203.0.113.1', '203.0.113.1'],
    ['10.1.2.3', '6.6.6.6, 203.0.113.1', '203.0.113.1'],
    ['10.1.2.3', '6.6.6.6, 203.0.113.1, 10.9.9.9, 192.0.2.1', '203.0.113.1'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', ', ,', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.1:4711', '203.0.113.1'],
    ['10.1.2.3', 'garbage', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.1, garbage', '10.1.2.3'],
    ['10.1.2.3', '0x7f.1', '10.1.2.3'],
    ['10.1.2.3', '2130706433', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.001', '10.1.2.3'],
    ['10.1.2.3', '::ffff:203.0.113.010', '10.1.2.3'],
    ['10.1.2.3', '2001:db9::1:0.0.00.2', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.1, ::10.9.9.9', '10.1.2.3'],
    ['::10.1.2.3', '203.0.113.1', '::10.1.2.3'],
    ['10.1.2.3', '"203.0.113.1"', '10.1.2.3'],
    ['10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ['::ffff:10.1.2.3', '::ffff:203.0.113.1', '203.0.113.1'],
    ['2001:db8::1', '[2001:db9::1]:443', '2001:db9::1'],
    ['192.0.2.2', '203.0.113.1', '192.0.2.2'],
    ['203.0.113.7', '127.0.0.1', '203.0.113.7'],
  ])('if the peer %s sends X-Forwarded-For "%s", the client is %s', (peer, forwardedFor, client) => {
    expect(proxies.clientOf(peer, forwardedFor)).toBe(client)
  })

  it('no proxy is trusted by default, not even a proxy on the loopback address', () => {
    const nobody = createTrustedProxies([])
    expect(['127.0.0.1', '::1', '10.0.0.1', ''].map(nobody.trusts)).toEqual([false, false, false, false])
  })

  it('the rate-limit key of a client is its IPv4 address or its IPv6 /64 network, whatever the notation', () => {
    expect(rateLimitKey('2001:db8:1:2:3:4:5:6')).toBe(rateLimitKey('2001:db8:1:2::1'))
    expect(rateLimitKey('2001:db8:1:2::1')).not.toBe(rateLimitKey('2001:db8:1:3::1'))
    expect(rateLimitKey('203.0.113.1')).toBe('203.0.113.1')
    expect(normalizeAddress('::ffff:203.0.113.1')).toBe('203.0.113.1')
  })
})
