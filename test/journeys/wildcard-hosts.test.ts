// Routes with wildcard hosts receive requests for every subdomain, and for no other host.
import { describe, expect, it } from 'vitest'
import { ask, requestBytes, value } from '../security/raw-client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const page = 'https://app.example.com'

/** Returns a route in YAML. The route writes its own name into the response header `X-Route`. */
const route = (name: string, rest: string) =>
  `  - { name: ${name}, auth: none, upstream: echo, headers: { response: { set: { X-Route: ${name} } } }, ${rest} }\n`

const yaml = (upstream: string) => `upstreams:
  echo: { targets: ['${upstream}'] }
routes:
${route('site', `path: /x/*, hosts: ['*.Example.com.:443'], methods: [GET, POST]`)}
${route('shop', `path: /x/*, hosts: ['*.shop.example.com'], methods: [GET, PUT]`)}
${route('exact', `path: /x/*, hosts: [a.shop.example.com], methods: [DELETE]`)}
${route('any', `path: /x/*`)}
${route('deeper', `path: /x/deeper, hosts: [b.shop.example.com]`)}
${route('site-only', `path: /only, hosts: ['*.example.com']`)}
${route('semicolon', `path: /semicolon/*, hosts: ['*.example.com'], allow_in_path: [semicolon]`)}
${route('page', `path: /page, hosts: ['*.example.com'], methods: [GET], cors: { origins: ['${page}'] }`)}
${route('upgrade', `path: /api/v1/subscription/upgrade, hosts: ['*.example.com']`)}
  - { name: guarded, upstream: echo, path: /reports, hosts: ['*.example.com'], plans: [pro] }
${route('open', `path: /reports, hosts: [open.example.com]`)}`

describe('a route with a wildcard host', () => {
  const at = journey(embeddedSetup, {}, yaml)
  const answerTo = (method: string, target: string, ...lines: string[]) =>
    ask(at.gateway.url, requestBytes(method, target, lines), method)

  /**
   * Returns the name of the route that responds. If the gateway refuses the request, returns the error code and the
   * allowed methods.
   */
  async function routed(host: string, target = '/x/1', method = 'GET', ...lines: string[]): Promise<string> {
    const answer = await answerTo(method, target, `Host: ${host}`, ...lines)
    if (answer === undefined) return 'no response'
    const allow = value(answer, 'allow')
    return value(answer, 'x-route') ?? `${value(answer, 'x-peage-error')}${allow ? ` (${allow})` : ''}`
  }

  it('receives requests for every subdomain, without regard to letter case, port and final dot', async () => {
    for (const host of [
      ...['a.example.com', 'A.EXAMPLE.com', 'a.example.com:8080', 'a.example.com.', 'A.b.Example.com.:80'],
      ...[
        '_a.example.com',
        'xn--bcher-kva.example.com',
        'shop.example.com',
        `${'a.'.repeat(120)}b.example.com`,
      ],
    ]) {
      expect([host, await routed(host)]).toEqual([host, 'site'])
    }
  })

  it('does not receive requests for the parent domain itself, invalid names, IP addresses or other hosts', async () => {
    for (const host of [
      ...[
        'example.com',
        'EXAMPLE.com.',
        '.example.com',
        'a..example.com',
        'a.example.com..',
        '..example.com',
      ],
      ...[
        '*.example.com',
        '*.shop.example.com',
        'my-example.com',
        'a.example.com.evil.test',
        'a.example.org',
      ],
      ...['a%2f.example.com', 'a&b.example.com', '-.example.com', 'com', '10.0.0.1', '[::1]:80', 'localhost'],
      `${'a.'.repeat(121)}b.example.com`,
    ]) {
      expect([host, await routed(host), await routed(host, '/only')]).toEqual([host, 'any', 'route_unknown'])
    }
    const old = await ask(at.gateway.url, Buffer.from('GET /only HTTP/1.0\r\n\r\n'))
    expect(old && value(old, 'x-peage-error')).toBe('route_unknown')
  })

  it('does not receive requests with an ambiguous host', async () => {
    for (const host of [
      'x@a.example.com',
      'a@b/../c.example.com',
      'x, a.example.com',
      'a.example.com#',
      'a.example.com:1:2',
    ]) {
      expect([host, await routed(host)]).toEqual([host, 'request_invalid'])
    }
    expect(await routed('a.example.com', '/x/1', 'GET', 'Host: b.example.com')).toBe('request_invalid')
  })

  it('takes precedence over shorter wildcards and routes without hosts, but an exact host takes precedence over the wildcard', async () => {
    expect(await routed('b.shop.example.com')).toBe('shop')
    expect(await routed('c.b.shop.example.com')).toBe('shop')
    expect(await routed('a.shop.example.com', '/x/1', 'DELETE')).toBe('exact')
    expect(await routed('b.a.shop.example.com')).toBe('shop')
    expect(await routed('b.shop.example.com', '/x/deeper')).toBe('deeper')
    expect(await routed('c.shop.example.com', '/x/deeper')).toBe('shop')
  })

  it('is also selected if it does not allow the method; the 405 response then lists only the methods of this route', async () => {
    expect(await routed('b.shop.example.com', '/x/1', 'POST')).toBe('method_not_allowed (GET, HEAD, PUT)')
    expect(await routed('a.shop.example.com', '/x/1', 'GET')).toBe('method_not_allowed (DELETE)')
    expect(await routed('a.example.com', '/x/1', 'PUT')).toBe('method_not_allowed (GET, HEAD, POST)')
    expect(await routed('example.com', '/x/1', 'PUT')).toBe('any')
  })

  it('is selected by the host in the request line if this line contains a complete URL, even if the header Host differs', async () => {
    for (const host of ['a.example.com', 'A.Example.com.:8080']) {
      expect(await routed('other.test', `http://${host}/x/1`)).toBe('site')
    }
    expect(at.upstream.received.map(({ headers }) => headers['x-forwarded-host'])).toEqual([
      'a.example.com',
      'A.Example.com.:8080',
    ])
    expect(await routed('a.example.com', 'http://example.com/x/1')).toBe('request_invalid')
    expect(await routed('a.example.com', 'http://.example.com/x/1')).toBe('request_invalid')
    expect(await routed('a.example.com', 'http://example.com/only')).toBe('route_unknown')
    expect(await routed('a.example.com', 'http://x@a.example.com/only')).toBe('path_invalid')
  })

  it('allows ambiguous paths and CORS preflights only for its own hosts', async () => {
    expect(await routed('a.example.com', '/semicolon/a;b')).toBe('semicolon')
    expect(await routed('example.com', '/semicolon/a;b')).toBe('path_invalid')
    const preflight = ['Access-Control-Request-Method: GET', `Origin: ${page}`]
    const allowed = async (host: string) => {
      const answer = await answerTo('OPTIONS', '/page', `Host: ${host}`, ...preflight)
      return answer && [answer.status, value(answer, 'access-control-allow-methods')]
    }
    expect(await allowed('a.example.com')).toEqual([204, 'GET, HEAD'])
    expect(await allowed('example.com')).toEqual([404, undefined])
  })

  it('replaces the built-in upgrade endpoint only for its own hosts', async () => {
    expect(await routed('a.example.com', '/api/v1/subscription/upgrade')).toBe('upgrade')
    expect(await routed('example.com', '/api/v1/subscription/upgrade')).not.toBe('upgrade')
  })

  it('requires a credential for all of its hosts, except for an exact host that has its own public route', async () => {
    for (const host of ['a.example.com', 'A.B.example.com.:1', 'x.open.example.com']) {
      expect([host, await routed(host, '/reports')]).toEqual([host, 'token_invalid'])
    }
    expect(await routed('OPEN.example.com.', '/reports')).toBe('open')
    expect(await routed('example.com', '/reports')).toBe('route_unknown')
  })
})
