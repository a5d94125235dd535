// Tests which origin and client address the console derives from a request. Only headers of trusted proxies count.
import { describe, expect, it } from 'vitest'
import { createBrowserView } from '../../../src/admin/console/browser-view.ts'

const seen = createBrowserView(['10.0.0.0/8'])
const request = (remoteAddress: string, headers: Record<string, string>, more = {}) =>
  seen({ socket: { remoteAddress, ...more }, headers } as never)

describe('a request to the admin listener', () => {
  it.each<[string, string, Record<string, string>, object, string | undefined]>([
    [
      'has the origin of the socket and Host',
      '127.0.0.1',
      { host: 'localhost:8081' },
      {},
      'http://localhost:8081',
    ],
    [
      'has an https origin if the socket uses TLS',
      '127.0.0.1',
      { host: 'Admin.example:443' },
      { encrypted: true },
      'https://admin.example',
    ],
    [
      'has an origin without the default port',
      '127.0.0.1',
      { host: 'admin.example:80' },
      {},
      'http://admin.example',
    ],
    ['can have an origin with an IPv6 address', '::1', { host: '[::1]:8081' }, {}, 'http://[::1]:8081'],
    [
      'has the origin that a trusted proxy sends',
      '10.1.2.3',
      { host: '127.0.0.1:8081', 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'admin.example' },
      {},
      'https://admin.example',
    ],
    [
      'has the origin that the nearest of several proxies sends',
      '10.1.2.3',
      { 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'evil.example, admin.example' },
      {},
      'https://admin.example',
    ],
    [
      'has the host of Host if the proxy sends no X-Forwarded-Host',
      '10.1.2.3',
      { host: 'admin.example', 'x-forwarded-proto': 'https' },
      {},
      'https://admin.example',
    ],
    [
      'has an origin that ignores the headers of an untrusted peer',
      '192.0.2.1',
      { host: 'localhost:8081', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' },
      {},
      'http://localhost:8081',
    ],
    ['has no origin if it has no Host header', '127.0.0.1', {}, {}, undefined],
    [
      'has no origin if the scheme is not http or https',
      '10.1.2.3',
      { host: 'a', 'x-forwarded-proto': 'javascript' },
      {},
      undefined,
    ],
  ])('%s', (_, peer, headers, more, origin) => {
    const view = request(peer, headers, more)
    expect(view.origin).toBe(origin)
    expect(view.isSecure).toBe(origin?.startsWith('https:') ?? false)
    expect(view.isForwarded).toBe(peer.startsWith('10.'))
  })

  it('has a rate-limit key that is derived from the client address, even behind a trusted proxy', () => {
    expect(request('10.1.2.3', { 'x-forwarded-for': '198.51.100.7, 10.0.0.1' }).client).toBe('198.51.100.7')
    expect(request('2001:db8::1', {}).client).toBe('2001:db8:0:0::/64')
  })
})
