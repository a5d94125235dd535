// Tests the questions of proxies (docs/forward-auth.md). At the path /.peage/authorize itself, a question describes the
// client's request in `X-Forwarded-*` headers. On a longer path, the rest of the path is the client's path.
import { beforeAll, describe, expect, it } from 'vitest'
import { RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { spellingsOf } from '../security/spellings.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startUpstream } from '../support/upstream.ts'
import { codeOf, identityOf, inFields, inPath, nobody, path, send } from './ask.ts'

const ones = (name: string, content: string) => [`${name}: ${content}`]

describe('a question', () => {
  let user: TestUser
  const at = gatewayBefore(
    startUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: public, path: /public/*, auth: none }
  - { name: guarded, path: /guarded/* }
  - { name: hosted, path: /hosted, auth: none, hosts: [api.example.com] }
  - { name: posted, path: /posted, auth: none, methods: [POST] }
  - { name: limited, path: /limited/*, auth: none, rate_limit: 1/1h }
  - { name: sockets, path: /sockets, upstream: app, websocket: true }
  - { name: slashes, path: /slashes/*, auth: none, allow_in_path: [double_slash] }
  - { name: rest, path: /*, upstream: app, auth: none }
`,
    { server: ', trusted_proxies: [192.0.2.0/24], forward_auth: { from: [127.0.0.1, 198.51.100.7] }' },
  )
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })
  const bearer = () => `Authorization: Bearer ${user.access}`
  const sent = async (bytes: Buffer, method = 'GET') => codeOf(await send(at.gateway.url, bytes, method))
  const asked = (lines: readonly string[], method = 'GET', question = path) =>
    sent(requestBytes(method, question, lines), method)
  const complete = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /public/x', 'X-Forwarded-Host: gw.test']

  it('with only the path /.peage/authorize is about the method, target and host in its X-Forwarded headers', async () => {
    expect(await asked(complete)).toBe('200')
    expect(await asked(complete.map(line => line.toUpperCase().replace('/PUBLIC', '/public')))).toBe('200')
    expect(await sent(inFields({ method: 'POST', target: '/posted' }))).toBe('200')
    expect(await sent(inFields({ target: '/posted' }))).toBe('405 method_not_allowed')
    expect(await sent(inFields({ target: '/hosted', host: 'API.example.com.:8443' }))).toBe('200')
    expect(await sent(inFields({ target: '/hosted?x=1', host: 'api.example.com' }))).toBe('200')
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'])(
    'may itself have the method %s',
    async method => {
      expect(await asked(complete, method)).toBe('200')
    },
  )

  it.each(['method', 'uri', 'host'])('gets 400 without X-Forwarded-%s, or with two', async name => {
    const others = complete.filter(line => !line.toLowerCase().startsWith(`x-forwarded-${name}:`))
    const [own = ''] = complete.filter(line => !others.includes(line))
    expect(others).toHaveLength(2)
    expect(await asked(others)).toBe('400 request_invalid')
    expect(await asked([...others, `X-Forwarded-${name}:`])).toBe('400 request_invalid')
    expect(await asked([own, ...complete])).toBe('400 request_invalid')
    const disguised = own.replaceAll(/-(?=.*:)/g, '_')
    expect(await asked([...others, disguised])).toBe('400 request_invalid')
    expect(await asked([...complete, disguised])).toBe('200')
  })

  it.each([
    ['a target that is an absolute URL', ['GET', 'http://gw.test/public/x', 'gw.test']],
    ['a target without a slash', ['GET', 'public/x', 'gw.test']],
    ['the target *', ['OPTIONS', '*', 'gw.test']],
    ['a host with a path', ['GET', '/public/x', 'gw.test/public']],
    ['a host with user info', ['GET', '/public/x', 'a@gw.test']],
    ['two hosts', ['GET', '/public/x', 'gw.test, other.test']],
    ['a method in lower case', ['get', '/public/x', 'gw.test']],
    ['the method CONNECT', ['CONNECT', '/public/x', 'gw.test']],
    ['an unknown method', ['FETCH', '/public/x', 'gw.test']],
    ['a method with a quotation mark', ['"', '/public/x', 'gw.test']],
  ])('gets 400 if its X-Forwarded headers contain %s', async (_, [method, target, host]) => {
    const lines = [`X-Forwarded-Method: ${method}`, `X-Forwarded-Uri: ${target}`, `X-Forwarded-Host: ${host}`]
    const answer = await send(at.gateway.url, requestBytes('GET', path, lines))
    expect(codeOf(answer)).toBe('400 request_invalid')
    // The connection must stay open, because the proxy also uses it for other clients.
    expect(value(answer, 'connection')).toBe('keep-alive')
    expect(() => at.gateway.log.map(line => JSON.parse(line))).not.toThrow()
  })

  it('with a path after /.peage/authorize is about this path, and about its own method, host and query', async () => {
    expect(await sent(inPath({ target: '/public/x?y=1' }))).toBe('200')
    expect(await sent(inPath({ method: 'POST', target: '/posted' }))).toBe('200')
    expect(await sent(inPath({ target: '/posted' }))).toBe('405 method_not_allowed')
    expect(await sent(inPath({ target: '/hosted', host: 'api.example.com' }))).toBe('200')
    expect(await sent(inPath({ target: '/' }))).toBe('200')
    expect(await sent(inPath({ target: '/guarded/x' }))).toBe('401 token_invalid')
    expect(await sent(inPath({ target: '/guarded/x', lines: [bearer()] }))).toBe('200')
    expect(await sent(inPath({ method: 'HEAD', target: '/public/x' }), 'HEAD')).toBe('200')
    expect(await sent(inPath({ target: '/guarded/x?as=nginx' }))).toBe('401 token_invalid')
  })

  it('with a path after /.peage/authorize is not affected by X-Forwarded headers about method, target and host', async () => {
    const forged = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /public/x', 'X-Forwarded-Host: gw.test']
    expect(await sent(inPath({ target: '/guarded/x', lines: forged }))).toBe('401 token_invalid')
    const twice = [...forged, ...forged]
    expect(await sent(inPath({ target: '/hosted', host: 'api.example.com', lines: twice }))).toBe('200')
  })

  it.each([
    '/.PEAGE/authorize',
    '/.peage/Authorize',
    '/.peage//authorize',
    '//.peage/authorize',
    '/.peage/%61uthorize',
    '/%2epeage/authorize/public/x',
    '/.Peage/authorize/public/x',
  ])('gets 404 if its path is in another spelling: %s', async spelling => {
    expect(await asked(complete, 'GET', spelling)).toBe('404 route_unknown')
    const absolute = `http://gw.test${path}/public/x`
    expect(await asked(['Host: gw.test', ...complete], 'GET', absolute)).toBe('404 route_unknown')
    expect(at.upstream.received).toEqual([])
  })

  it('counts as a request of a client if its path only begins like the path for questions', async () => {
    expect(await asked(complete, 'GET', `${path}r`)).toBe('200')
    expect(at.upstream.received.splice(0)).toMatchObject([{ url: `${path}r` }])
  })

  it.each([
    ['the path', path],
    ['a longer path', `${path}/public/x`],
    ['the path for nginx', `${path}?as=nginx`],
    ['a longer path that no route accepts', `${path}/%2e%2e/x`],
    ['a longer path with a forbidden character', `${path}/a;b\\`],
  ])(
    'gets 404 on %s if it comes from an address outside `from`, whatever its headers contain',
    async (_, question) => {
      const outside = (lines: readonly string[], method = 'GET') =>
        send(at.gateway.url, requestBytes(method, question, lines), method, '127.0.0.2')
      const lists = [
        complete,
        [],
        ['X_User_Id: 1'],
        ['X-Forwarded-For: 127.0.0.1', ...complete],
        [bearer(), bearer()],
        ['Origin: https://app.example.com', 'Access-Control-Request-Method: GET'],
        ['Connection: Upgrade', 'Upgrade: websocket'],
        ['Expect: nothing'],
      ]
      for (const lines of lists) expect(codeOf(await outside(lines))).toBe('404 route_unknown')
      const preflight = ['Origin: https://app.example.com', 'Access-Control-Request-Method: GET', ...complete]
      expect(codeOf(await outside(preflight, 'OPTIONS'))).toBe('404 route_unknown')
    },
  )

  describe('has as the address of the client', () => {
    const clientOf = async (fields: readonly string[]) => {
      at.gateway.log.length = 0
      const answers = [
        await asked([...complete, ...fields]),
        await sent(inPath({ target: '/public/x', lines: fields })),
      ]
      expect(answers).toEqual(['200', '200'])
      const clients = await expect
        .poll(() => at.gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request'))
        .toHaveLength(2)
        .then(() => at.gateway.log.map(line => JSON.parse(line)).flatMap(({ client }) => client ?? []))
      expect(new Set(clients).size).toBe(1)
      return clients[0]
    }
    it.each([
      ['the peer, without X-Forwarded-For', [], '127.0.0.1'],
      ['the address in X-Forwarded-For', ones('X-Forwarded-For', '203.0.113.9'), '203.0.113.9'],
      ['the rightmost address', ones('X-Forwarded-For', '203.0.113.1, 203.0.113.9'), '203.0.113.9'],
      [
        'the rightmost address of the last header',
        ['X-Forwarded-For: 203.0.113.1', 'X-Forwarded-For: 203.0.113.9'],
        '203.0.113.9',
      ],
      [
        'the address before trusted proxies',
        ones('X-Forwarded-For', '203.0.113.1, 203.0.113.9, 192.0.2.3'),
        '203.0.113.9',
      ],
      [
        'the address before other proxies that may ask',
        ones('X-Forwarded-For', '203.0.113.9, 198.51.100.7'),
        '203.0.113.9',
      ],
    ])('%s', async (_, fields, client) => {
      expect(await clientOf(fields)).toBe(client)
    })

    it('an address that has its own rate limit', async () => {
      const from = (address: string) =>
        sent(inFields({ target: '/limited/x', lines: [`X-Forwarded-For: ${address}`] }))
      expect(await from('203.0.113.1')).toBe('200')
      expect(await from('203.0.113.1')).toBe('429 rate_limited')
      expect(await from('203.0.113.2')).toBe('200')
    })
  })

  describe('with another spelling of an identity header', () => {
    const names = [
      ['x', 'user', 'id'],
      ['x', 'user', 'plan'],
      ['x', 'user', 'email'],
      ['x', 'user', 'key', 'id'],
      ['x', 'user', 'scopes'],
      ['x', 'peage', 'assertion'],
    ]
    it.each(names)('gets 400 (the exact name begins with %s-%s-%s)', async (...words) => {
      const exact = words.join('-')
      for (const name of [...spellingsOf(...words), `_${exact}`, `${exact}_`, exact.replace('-', '_')]) {
        const isExact = name.toLowerCase() === exact
        const expected = isExact ? '200' : '400 request_invalid'
        expect([name, await asked([...complete, `${name}: 1`])]).toEqual([name, expected])
        expect([name, await sent(inPath({ target: '/public/x', lines: [`${name}: 1`] }))]).toEqual([
          name,
          expected,
        ])
      }
    })

    it('gets 400 even if its path is invalid or its credential is missing', async () => {
      expect(await sent(inPath({ target: '/nothing/..', lines: ['X_User_Id: 1'] }))).toBe(
        '400 request_invalid',
      )
      expect(await sent(inPath({ target: '/guarded/x', lines: ['X_User_Id: 1'] }))).toBe(
        '400 request_invalid',
      )
    })

    it('is accepted if the name is only similar to the name of an identity header', async () => {
      expect(await asked([...complete, 'X_User_Name: 1', 'X.Peage: 1', 'xUser-Id: 1', 'X-Userid: 1'])).toBe(
        '200',
      )
    })
  })

  it('is decided with the credentials of the client, and its identity headers are ignored', async () => {
    const lines = [bearer(), 'X-User-Id: 999', 'X-User-Plan: pro', 'X-Peage-Assertion: forged']
    const answer = await send(at.gateway.url, inFields({ target: '/guarded/x', lines }))
    expect(identityOf(answer)).toEqual({ ...nobody, 'x-user-id': String(user.id), 'x-user-plan': 'free' })
    expect(await sent(inFields({ target: '/guarded/x', lines: [bearer(), bearer()] }))).toBe(
      '400 credentials_ambiguous',
    )
    expect(await sent(inPath({ target: '/public/x', lines: ['X-API-Key: a', 'X-API-Key: a'] }))).toBe(
      '400 credentials_ambiguous',
    )
  })

  it('is decided like a GET if it is about a WebSocket handshake, and the response is never 101', async () => {
    const handshake = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ]
    const token = `Sec-WebSocket-Protocol: peage.bearer.${user.access}`
    for (const about of [inFields, inPath]) {
      const question = (lines: readonly string[]) => sent(about({ target: '/sockets', lines }))
      expect(await question([...handshake, bearer()])).toBe('200')
      expect(await question([...handshake, token])).toBe('401 token_invalid')
      expect(await question([token])).toBe('401 token_invalid')
      // An incomplete handshake counts as an ordinary request.
      expect(await question([...handshake.slice(0, 2), bearer()])).toBe('200')
    }
    expect(at.upstream.received).toEqual([])
  })

  it('may have a body, which the gateway ignores', async () => {
    const connection = new RawConnection(at.gateway.url)
    try {
      const body = 'GET /smuggled HTTP/1.1\r\nHost: gw.test\r\n\r\n'
      for (const framing of [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked']) {
        const bytes = framing.startsWith('T') ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
        connection.write(requestBytes('POST', path, [...complete, framing], bytes))
        expect((await connection.answer())?.status).toBe(200)
        connection.write(requestBytes('POST', `${path}/guarded/x`, [framing], bytes))
        expect((await connection.answer())?.status).toBe(401)
      }
      expect(at.upstream.received).toEqual([])
    } finally {
      connection.close()
    }
  })

  it('gets its response immediately if it has the header Expect, and the connection is then closed', async () => {
    for (const expectation of ['100-continue', 'something-else']) {
      const lines = [...complete, `Expect: ${expectation}`, 'Content-Length: 5']
      const answer = await send(at.gateway.url, requestBytes('POST', path, lines))
      expect([expectation, answer.status]).toEqual([expectation, 200])
    }
    const waiting = [...complete, 'Expect: 100-continue', 'Content-Length: 5']
    const answer = await send(at.gateway.url, requestBytes('POST', path, waiting))
    expect(value(answer, 'connection')).toBe('close')
  })

  it('may use HTTP/1.0, even without the header Host', async () => {
    const old = (target: string, lines: readonly string[]) =>
      sent(Buffer.from([`GET ${target} HTTP/1.0`, ...lines, '', ''].join('\r\n'), 'latin1'))
    expect(await old(path, complete)).toBe('200')
    expect(await old(path, ['Host: peage.internal', ...complete])).toBe('200')
    expect(await old(`${path}/public/x`, [])).toBe('200')
    expect(await old(`${path}/hosted`, [])).toBe('200')
    expect(at.upstream.received.splice(0)).toEqual([])
  })

  it('is refused if it is not valid HTTP, and its connection is closed', async () => {
    const refused = async (lines: readonly string[], bytes = '') => {
      const connection = new RawConnection(at.gateway.url)
      try {
        connection.write(requestBytes('POST', path, [...complete, ...lines], bytes))
        const answer = await connection.answer()
        return [answer && codeOf(answer), await connection.endsWithin(2_000)]
      } finally {
        connection.close()
      }
    }
    expect(await refused(['Host: a', 'Host: b'])).toEqual(['400 request_invalid', true])
    expect(await refused(['Content-Length: 5', 'Transfer-Encoding: chunked'])).toEqual([
      '400 request_invalid',
      true,
    ])
    expect(await refused([`X-Long: ${'a'.repeat(17_000)}`])).toEqual(['431 headers_too_large', true])
  })

  it('is not affected by Max-Forwards if it is about an OPTIONS request, because the proxy forwards that request', async () => {
    expect(
      await sent(inFields({ method: 'OPTIONS', target: '/guarded/x', lines: ['Max-Forwards: 0'] })),
    ).toBe('401 token_invalid')
    const lines = ['Max-Forwards: 0', bearer()]
    expect(await sent(inFields({ method: 'OPTIONS', target: '/guarded/x', lines }))).toBe('200')
  })
})
