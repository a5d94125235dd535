// The upstream receives the client's path byte for byte, unless the route changes it. Repeated slashes are merged.
import { beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { ask, requestBytes, value } from '../security/raw-client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startUpstream } from '../support/upstream.ts'

describe('paths', () => {
  const at = gatewayBefore(
    startUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: stripped, path: /old/v1/races/*, upstream: app, auth: none, strip_prefix: /old/v1 }
  - { name: stripped-whole, path: /whole/*, upstream: app, auth: none, strip_prefix: /whole }
  - { name: rewritten, path: /old/v2/:kind/*, upstream: app, auth: none, rewrite: /new/:kind/all/* }
  - { name: fixed, path: /fixed/:id, upstream: app, auth: none, rewrite: /items }
  - { name: hosted, path: /hosted/*, upstream: app, auth: none, hosts: [api.example.com, "[::1]"] }
  - { name: by-host, path: /both, upstream: app, auth: none, hosts: [a.example.com], methods: [GET] }
  - { name: any-host, path: /both, upstream: app, auth: none, methods: [POST] }
`,
  )
  beforeEach(() => {
    at.upstream.received.length = 0
  })

  const send = (method: string, target: string, lines: string[] = []) =>
    ask(at.gateway.url, requestBytes(method, target, lines), method)

  /** Sends a request, waits for its log line, and returns the request target that the upstream received. */
  async function sent(target: string, lines: string[] = [], method = 'GET') {
    at.upstream.received.length = 0
    const answer = await send(method, target, lines)
    expect([target, answer?.status]).toEqual([target, 200])
    await expect.poll(() => at.gateway.log.at(-1)).toContain('"msg":"request"')
    return at.upstream.received[0]?.url
  }
  it.each([
    '/public/a%20b',
    '/PUBLIC/CaSe',
    '/%70ublic/%7Euser/%e2%82%ac/%E2%82%AC',
    '/public/',
    '/public',
    '/public/x/',
    "/public/a:b@c!$&'()*+,=~_-.x",
    '/public/%25',
    '/public/x?',
    '/public/x?a=%2F..%2f&b=c d'.replace(' ', '+'),
    '/public/x??a=1&&b=/../..//;x',
    '/public/x?\\|^`{}"<>[]',
    '/public?x=http://evil.example/#'.slice(0, -1),
  ])('the request target %s is sent to the upstream byte for byte', async target => {
    expect(await sent(target)).toBe(target)
  })

  it.each([
    ['//public//x', '/public/x'],
    ['/public///', '/public/'],
    ['/public//x//?a=//b', '/public/x/?a=//b'],
    ['http://gw.test/public//x?y', '/public/x?y'],
    ['http://gw.test/public?', '/public?'],
  ])('the request target %s is sent to the upstream as %s', async (target, expected) => {
    expect(await sent(target)).toBe(expected)
  })

  it.each([
    ['/OLD/V1/Races/A%20b?x=1', '/Races/A%20b?x=1'],
    ['//old//v1//races//1', '/races/1'],
    ['/whole?x', '/?x'],
    ['/whole/http:/evil.example', '/http:/evil.example'],
  ])('a route with `strip_prefix` changes %s to %s', async (target, expected) => {
    expect(await sent(target)).toBe(expected)
  })

  it.each([
    ['/old/v2/c%20s/%31?q', '/new/c%20s/all/%31?q'],
    ['/old/v2/:kind/*', '/new/:kind/all/*'],
    ['/fixed/1?x=2', '/items?x=2'],
  ])('a route with `rewrite` changes %s to %s', async (target, expected) => {
    expect(await sent(target)).toBe(expected)
  })

  it('a route with `hosts` matches only these hosts; if it does not allow the method, the request gets a 405, even if a route without `hosts` allows it', async () => {
    for (const host of ['API.Example.COM.:8080', '[::1]:80']) {
      await sent('/hosted/x', [`Host: ${host}`])
      expect(JSON.parse(at.gateway.log.at(-1) ?? '{}')).toMatchObject({ route: 'hosted' })
    }
    at.upstream.received.length = 0
    for (const host of ['api.example.com.evil.example', 'api.example.com..', ''])
      expectRefusal(await send('GET', '/hosted/x', [`Host: ${host}`]), 'route_unknown')
    const answer = await send('POST', '/both', ['Host: a.example.com', 'Content-Length: 0'])
    expectRefusal(answer, 'method_not_allowed')
    expect(answer && value(answer, 'allow')).toBe('GET, HEAD')
    expect(at.upstream.received).toEqual([])
  })
})
