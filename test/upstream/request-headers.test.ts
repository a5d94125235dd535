// The upstream receives the client's headers unchanged, except hop-by-hop headers and headers that the gateway sets.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ask, requestBytes } from '../security/raw-client.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startUpstream } from '../support/upstream.ts'

/** Headers in which proxies describe the client, for example its IP address. Services trust these headers. */
const clientFields = `
  Client-IP X-Client-IP X-Cluster-Client-IP True-Client-IP X-Real-IP X-Remote-IP X-Remote-Addr
  Remote-Addr X-Originating-IP X-Forwarded Forwarded-For X-Vercel-Forwarded-For CF-Connecting-IP
  CF-Connecting-IPv6 CF-Pseudo-IPv4 DO-Connecting-IP Fastly-Client-IP Fly-Client-IP
  X-Azure-ClientIP X-Azure-SocketIP X-Appengine-User-IP X-NF-Client-Connection-IP X-ProxyUser-Ip
  WL-Proxy-Client-IP X-Envoy-External-Address CloudFront-Viewer-Address SSL-Client-Cert
  SSL-Client-Verify SSL-Client-Subject-DN X-SSL-Client-S-DN X-SSL-Client-Verify X-SSL-Issuer
  X-TLS-Client-Cert X-Client-Cert X-Client-Cert-Present X-Client-Certificate X-Client-DN
  Client-Cert Client-Cert-Chain CF-Client-Cert-Der-Base64 WL-Proxy-Client-Cert X-ARR-ClientCert
  X-Amzn-Mtls-Clientcert-Leaf X-Forwarded-Client-Cert X-Forwarded-Tls-Client-Cert
`
  .trim()
  .split(/\s+/)

const underscored = (name: string) => name.replaceAll('-', '_')
const dotted = (name: string) => name.replaceAll('-', '.').toUpperCase()
const stretched = (name: string) => `${name.toLowerCase().replaceAll('-', '__-')}_`

describe.each([
  ['without trusted proxies', ''],
  ['behind a trusted proxy', ", trusted_proxies: ['127.0.0.0/8', '10.0.0.0/8', '2001:db8:1::/48']"],
])('request headers %s', (_, trustedProxies) => {
  const isTrusted = trustedProxies !== ''
  let user: TestUser

  const at = gatewayBefore(
    startUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: private, path: /private/*, upstream: app }
  - { name: optional, path: /optional/*, upstream: app, auth: optional }
  - { name: credentials, path: /credentials, upstream: app, forward_credentials: true }
  - { name: email, path: /email, upstream: app, forward_email: true }
  - { name: stripped, path: /old/v1/races/*, upstream: app, auth: none, strip_prefix: /old/v1 }
  - { name: socket, path: /socket, upstream: app, auth: none, websocket: true }
`,
    { server: trustedProxies },
  )
  beforeAll(async () => {
    user = await newUser(at.gateway, 'premium')
  })
  beforeEach(() => {
    at.upstream.received.length = 0
  })

  /** Sends header lines and returns the headers that the upstream received, in their order and case. */
  async function received(lines: string[], path = '/public/x', method = 'GET'): Promise<[string, string][]> {
    const answer = await ask(at.gateway.url, requestBytes(method, path, lines), method)
    expect(answer?.status).toBe(200)
    const raw = at.upstream.received[0]?.rawHeaders ?? []
    return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string])
  }
  const of = (fields: [string, string][], name: string) =>
    fields.filter(([other]) => other.toLowerCase() === name).map(([, text]) => text)

  it('the client’s headers keep their order and case, and repeated headers are not merged', async () => {
    const lines = [
      'X-B: 1',
      'Accept: a/b',
      'x-a: \xe9',
      'X-b: 2',
      'Cookie: a=1',
      'cookie: b=2',
      'ACCEPT: c/d',
      'X-Empty:',
      'Range: bytes=0-1',
    ]
    const fields = await received(lines)
    const own = new Set([
      'host',
      'connection',
      'via',
      'x-request-id',
      'x-forwarded-for',
      'x-forwarded-proto',
      'x-forwarded-host',
    ])
    expect(
      fields.filter(([name]) => !own.has(name)).map(([name, text]) => `${name}: ${text}`.trim()),
    ).toEqual(lines)
  })

  it('hop-by-hop headers and the headers named in `Connection` are dropped', async () => {
    const fields = await received([
      'Connection: close, X-Named , x-also-named',
      'Connection: Upgrade',
      'X-Named: 1',
      'X-Also-Named: 1',
      'Keep-Alive: timeout=1',
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Connection: keep-alive',
      'Proxy: http://evil.example',
      'TE: trailers, deflate',
      'Trailer: X-Named',
      'Upgrade: websocket',
      'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
      'X-Kept: 1',
    ])
    const names = fields.map(([name]) => name.toLowerCase())
    expect(names).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/named|proxy|^te$|^trailer$|upgrade|settings/)]),
    )
    expect([of(fields, 'x-kept'), of(fields, 'connection'), of(fields, 'keep-alive')]).toEqual([
      ['1'],
      ['keep-alive'],
      [],
    ])
  })

  it('Host contains the host of the upstream; Via contains the entries of the client, then the gateway', async () => {
    const fields = await received(['Host: API.example.com:8443', 'Via: 1.0 outer', 'via: 1.1 inner'])
    expect(of(fields, 'host')).toEqual([new URL(at.upstream.url).host])
    expect(of(fields, 'via')).toEqual(['1.0 outer, 1.1 inner, 1.1 peage'])
    expect(of(fields, 'x-forwarded-host')).toEqual(['API.example.com:8443'])
  })

  it('the X-Forwarded headers contain only values that the gateway observed or that a trusted proxy sent', async () => {
    const fields = await received([
      'X-Forwarded-For: 203.0.113.9, 10.1.2.3',
      'X-Forwarded-For: 10.9.9.9',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: www.example.com',
      'X-Forwarded-Port: 443',
      'Forwarded: for=203.0.113.9;proto=https',
      'X-Real-IP: 203.0.113.9',
    ])
    const said = [
      'x-forwarded-for',
      'x-forwarded-proto',
      'x-forwarded-host',
      'x-forwarded-port',
      'forwarded',
      'x-real-ip',
    ]
    expect(said.map(name => of(fields, name))).toEqual(
      isTrusted
        ? [
            ['203.0.113.9, 10.1.2.3, 10.9.9.9, 127.0.0.1'],
            ['https'],
            ['www.example.com'],
            ['443'],
            ['for=203.0.113.9;proto=https'],
            ['203.0.113.9'],
          ]
        : [['127.0.0.1'], ['http'], ['gw.test'], [], [], []],
    )
  })

  it('a header that describes the client reaches the upstream only if a trusted proxy sent it', async () => {
    for (let i = 0; i < clientFields.length; i += 15) {
      const names = clientFields.slice(i, i + 15)
      at.upstream.received.length = 0
      const fields = await received(names.map(name => `${name}: forged`))
      const arrived = fields.filter(([, text]) => text === 'forged').map(([name]) => name)
      expect(arrived).toEqual(isTrusted ? names : [])
    }
  })

  it.each([
    ['underscores', underscored],
    ['dots and capitals', dotted],
    ['runs of separators', stretched],
  ])(
    'a header that describes the client never reaches the upstream if it is spelled with %s',
    async (_, spell) => {
      for (let i = 0; i < clientFields.length; i += 15) {
        const lines = clientFields.slice(i, i + 15).map(name => `${spell(name)}: forged`)
        at.upstream.received.length = 0
        const fields = await received(lines)
        expect(fields.filter(([, text]) => text === 'forged')).toEqual([])
      }
    },
  )

  it('in a WebSocket handshake too, a header that describes the client reaches the upstream only from a trusted proxy', async () => {
    const names = ['Client-IP', 'X-SSL-Client-Verify', 'X-Client-Cert']
    let seen: string[] = []
    at.upstream.answer = (request, response) => {
      seen = request.rawHeaders
      response.writeHead(403).end()
    }
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
    const forged = names.map(name => `${name}: forged`)
    await ask(at.gateway.url, requestBytes('GET', '/socket', [...lines, key, ...forged]))
    at.upstream.answer = undefined
    expect(seen).toContain('Sec-WebSocket-Key')
    expect(names.filter(name => seen.includes(name))).toEqual(isTrusted ? names : [])
  })

  it('other spellings of the gateway’s headers, for example with `_`, are dropped, because an upstream may treat both as one header', async () => {
    const fields = await received([
      'x_forwarded_for: 6.6.6.6',
      'X.Forwarded.Proto: ftp',
      'X-Forwarded_Host: evil.example',
      'X_Real_IP: 6.6.6.6',
      'remote_user: evil',
      'X-Forwarded_Port: 21ftp',
    ])
    expect(fields.flat().filter(text => /6\.6\.6\.6|ftp|evil/.test(text))).toEqual([])
  })

  it.each([
    ['6.6.6.6, 203.0.113.9, 10.0.0.1', '203.0.113.9'],
    ['[2001:db8:2::1]:4711, 2001:db8:1::1', '2001:db8:2::1'],
    [', ,', '127.0.0.1'],
  ])('with X-Forwarded-For "%s", the client is the last untrusted address', async (forwardedFor, client) => {
    await received([`X-Forwarded-For: ${forwardedFor}`])
    await expect.poll(() => at.gateway.log.at(-1)).toContain(`"client":"${isTrusted ? client : '127.0.0.1'}"`)
  })

  it('X-Forwarded-Prefix contains the prefix that the gateway or a trusted proxy stripped', async () => {
    expect(
      of(await received(['X-Forwarded-Prefix: /evil'], '/OLD/v%31/races/1'), 'x-forwarded-prefix'),
    ).toEqual(['/OLD/v%31'])
    at.upstream.received.length = 0
    expect(of(await received([]), 'x-forwarded-prefix')).toEqual([])
    at.upstream.received.length = 0
    const sent = ['X-Forwarded-Prefix: /outer', 'X_Forwarded_Prefix: /evil']
    expect(of(await received(sent), 'x-forwarded-prefix')).toEqual(isTrusted ? ['/outer'] : [])
  })

  it.each([
    ['a'.repeat(128), true],
    ['<script>', false],
  ])('with X-Request-Id "%s", the upstream receives this ID: %s', async (sent, isKept) => {
    const [id, ...more] = of(await received([`X-Request-Id: ${sent}`]), 'x-request-id')
    expect(more).toEqual([])
    if (isKept) expect(id).toBe(sent)
    else expect(id).toMatch(/^[\w-]{16}-[0-9a-z]+$/)
    await expect.poll(() => at.gateway.log.at(-1)).toContain(`"request_id":"${id}"`)
  })

  it('traceparent, tracestate and baggage are passed on', async () => {
    const lines = [
      'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'tracestate: a=1',
      'baggage: k=v',
    ]
    const fields = await received(lines)
    expect(lines.map(line => of(fields, line.split(':')[0] as string)[0])).toEqual(
      lines.map(line => line.replace(/^\w+: /, '')),
    )
  })

  it.each([
    ['/private/x', false],
    ['/optional/x', false],
    ['/credentials', true],
  ])('credentials in a request to %s reach the upstream: %s', async (path, passed) => {
    const bearer = `Bearer ${user.access}`
    const fields = await received([`Authorization: ${bearer}`, 'X-API-Key: some-key'], path)
    expect([of(fields, 'authorization'), of(fields, 'x-api-key')]).toEqual(
      passed ? [[bearer], ['some-key']] : [[], []],
    )
    expect([of(fields, 'x-user-id'), of(fields, 'x-user-plan')]).toEqual([[String(user.id)], ['premium']])
  })

  it('on a route with `auth: none`, credentials are passed on, except access tokens and API keys of Péage', async () => {
    const theirs = await received(['Authorization: Basic eDp5', 'X-API-Key: theirs'])
    expect([of(theirs, 'authorization'), of(theirs, 'x-api-key')]).toEqual([['Basic eDp5'], ['theirs']])
    at.upstream.received.length = 0
    const ours = await received([`Authorization: Token ${user.access}`, 'X-API-Key:  peage_x'])
    expect([of(ours, 'authorization'), of(ours, 'x-api-key'), of(ours, 'x-user-id')]).toEqual([[], [], []])
  })

  it('with `forward_email`, the upstream receives the user’s email in x-user-email, percent-encoded to ASCII', async () => {
    const sent = [`Authorization: Bearer ${user.access}`, 'X-User-Email: forged@example.com']
    const emailsReceived = async () => {
      at.upstream.received.length = 0
      return of(await received(sent, '/email'), 'x-user-email')
    }
    expect(await emailsReceived()).toEqual([user.email])
    for (const [email, field] of [
      ['jérôme@example.com', 'j%C3%A9r%C3%B4me@example.com'],
      ['a b@example.com', 'a%20b@example.com'],
      ['100%@example.com', '100%25@example.com'],
      ['😀@example.com', '%F0%9F%98%80@example.com'],
    ] as const) {
      await at.gateway.sql('update users set email = $2 where id = $1', [user.id, email])
      await expect.poll(emailsReceived).toEqual([field])
    }
    await at.gateway.sql('update users set email = $2 where id = $1', [user.id, user.email])
  })
})
