// What an operator's browser sees of the admin listener: nobody but a trusted proxy may say so.
import { describe, expect, it } from 'vitest'
import { createBrowserView } from '../../../src/admin/console/browser-view.ts'

const seen = createBrowserView(['10.0.0.0/8'])
const request = (remoteAddress: string, headers: Record<string, string>, more = {}) =>
  seen({ socket: { remoteAddress, ...more }, headers } as never)

describe('what a browser sees', () => {
  it.each<[string, string, Record<string, string>, object, string | undefined]>([
    ['the socket and Host', '127.0.0.1', { host: 'localhost:8081' }, {}, 'http://localhost:8081'],
    [
      'TLS of the socket',
      '127.0.0.1',
      { host: 'Admin.example:443' },
      { encrypted: true },
      'https://admin.example',
    ],
    ['the default port left out', '127.0.0.1', { host: 'admin.example:80' }, {}, 'http://admin.example'],
    ['an IPv6 address', '::1', { host: '[::1]:8081' }, {}, 'http://[::1]:8081'],
    [
      'what a trusted proxy says',
      '10.1.2.3',
      { host: '127.0.0.1:8081', 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'admin.example' },
      {},
      'https://admin.example',
    ],
    [
      'what the nearest proxy says, where several do',
      '10.1.2.3',
      { 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'evil.example, admin.example' },
      {},
      'https://admin.example',
    ],
    [
      'Host, where the proxy passes it on',
      '10.1.2.3',
      { host: 'admin.example', 'x-forwarded-proto': 'https' },
      {},
      'https://admin.example',
    ],
    [
      'nothing that anybody else says',
      '192.0.2.1',
      { host: 'localhost:8081', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' },
      {},
      'http://localhost:8081',
    ],
    ['nothing without a Host', '127.0.0.1', {}, {}, undefined],
    [
      'nothing of another scheme',
      '10.1.2.3',
      { host: 'a', 'x-forwarded-proto': 'javascript' },
      {},
      undefined,
    ],
  ])('is %s', (_, peer, headers, more, origin) => {
    const view = request(peer, headers, more)
    expect(view.origin).toBe(origin)
    expect(view.isSecure).toBe(origin?.startsWith('https:') ?? false)
    expect(view.isForwarded).toBe(peer.startsWith('10.'))
  })

  it('comes from the address behind the proxy, and is counted by it', () => {
    expect(request('10.1.2.3', { 'x-forwarded-for': '198.51.100.7, 10.0.0.1' }).client).toBe('198.51.100.7')
    expect(request('2001:db8::1', {}).client).toBe('2001:db8:0:0::/64')
  })
})
