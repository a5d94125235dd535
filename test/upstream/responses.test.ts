// The client receives the upstream's response unchanged, except for hop-by-hop headers.
import { describe, expect, it } from 'vitest'
import { ask, type RawAnswer, RawConnection, requestBytes, value, values } from '../security/raw-client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startScriptedUpstream } from './scripted-upstream.ts'

describe('responses', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
`,
  )

  /** Makes the upstream send these bytes, and returns the response that the client receives. */
  async function answerTo(bytes: string, method = 'GET', lines: string[] = []): Promise<RawAnswer> {
    at.upstream.script = socket => socket.write(Buffer.from(bytes, 'latin1'))
    const answer = await ask(at.gateway.url, requestBytes(method, '/public/x', lines), method)
    if (answer === undefined) throw new Error('no answer')
    return answer
  }

  const added = new Set(['via', 'x-request-id', 'date', 'connection', 'keep-alive'])
  const passed = (answer: RawAnswer) => answer.fields.filter(([name]) => !added.has(name))

  it('headers keep their order, and repeated headers are not merged', async () => {
    const answer = await answerTo(
      'HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nX-B: 1\r\nset-cookie: b=2\r\nX-A: \xe9\r\nX-b: 2\r\nVary: a\r\nVary: b\r\nETag: W/"x"\r\nContent-Length: 0\r\n\r\n',
    )
    expect(passed(answer)).toEqual([
      ['set-cookie', 'a=1; Path=/'],
      ['x-b', '1'],
      ['set-cookie', 'b=2'],
      ['x-a', '\xe9'],
      ['x-b', '2'],
      ['vary', 'a'],
      ['vary', 'b'],
      ['etag', 'W/"x"'],
      ['content-length', '0'],
    ])
  })

  it('hop-by-hop headers and the headers named in `Connection` are dropped', async () => {
    const answer = await answerTo(
      [
        'HTTP/1.1 200 OK',
        'Connection: keep-alive, X-Named, content-length',
        'Connection: x-also-named',
        'X-Named: 1',
        'x-also-named: 1',
        'Keep-Alive: timeout=99',
        'Proxy-Connection: keep-alive',
        'Proxy-Authenticate: Basic',
        'TE: trailers',
        'Upgrade: h2c',
        'X-Kept: 1',
        'Content-Length: 2',
        '',
        'ok',
      ].join('\r\n'),
    )
    expect(passed(answer)).toEqual([
      ['x-kept', '1'],
      ['content-length', '2'],
    ])
    expect(value(answer, 'keep-alive')).not.toBe('timeout=99')
    expect(answer.body.toString()).toBe('ok')
  })

  it('Alt-Svc is dropped from headers and trailers, so a service cannot send browsers to another port', async () => {
    for (const name of ['Alt-Svc', 'alt-svc', 'ALT-SVC', 'Alternate-Protocol']) {
      const field = `${name}: h2=":9443"; ma=86400`
      const answer = await answerTo(`HTTP/1.1 200 OK\r\nX-A: 1\r\n${field}\r\nContent-Length: 0\r\n\r\n`)
      expect(passed(answer)).toEqual([
        ['x-a', '1'],
        ['content-length', '0'],
      ])
      const trailed = await answerTo(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${field}\r\nX-B: 2\r\n\r\n`,
      )
      expect(trailed.trailers).toEqual([['x-b', '2']])
    }
  })

  it('a 204 response to a HEAD request has no Content-Length', async () => {
    const answer = await answerTo('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'HEAD')
    expect([answer.status, passed(answer)]).toEqual([204, []])
  })

  it('the last entry of Via is the gateway; X-Request-Id contains the ID of the request, unless the upstream sends another ID', async () => {
    const answer = await answerTo('HTTP/1.1 200 OK\r\nVia: 1.0 inner\r\nContent-Length: 0\r\n\r\n', 'GET', [
      'X-Request-Id: abc-123',
    ])
    expect([values(answer, 'via'), values(answer, 'x-request-id')]).toEqual([
      ['1.0 inner, 1.1 peage'],
      ['abc-123'],
    ])
    const own = await answerTo('HTTP/1.1 200 OK\r\nX-Request-Id: theirs\r\nContent-Length: 0\r\n\r\n')
    expect(values(own, 'x-request-id')).toEqual(['theirs'])
    const named = await answerTo(
      'HTTP/1.1 200 OK\r\nConnection: X-Request-Id\r\nX-Request-Id: theirs\r\nContent-Length: 0\r\n\r\n',
      'GET',
      ['X-Request-Id: abc-123'],
    )
    expect(values(named, 'x-request-id')).toEqual(['abc-123'])
  })

  it.each([
    ['204', 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n', [['x-a', '1']]],
    ['204 with a length', 'HTTP/1.1 204 No Content\r\nX-A: 1\r\ncontent-LENGTH: 5\r\n\r\n', [['x-a', '1']]],
    ['204 with a length of 0', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n', []],
    [
      '304 with the length of the cached body',
      'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 42\r\n\r\n',
      [
        ['etag', '"x"'],
        ['content-length', '42'],
      ],
    ],
    ['304 without a length', 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', [['etag', '"x"']]],
    ['205', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n', [['content-length', '0']]],
  ])(
    'a %s is relayed with only the headers that its status code allows, and the next response arrives',
    async (_, bytes, fields) => {
      const answer = await answerTo(bytes)
      expect([answer.status, passed(answer), answer.body.length]).toEqual([
        Number(bytes.slice(9, 12)),
        fields,
        0,
      ])
      expect((await answerTo('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')).body.toString()).toBe('ok')
    },
  )

  it('a HEAD request gets the headers of a GET and no body', async () => {
    for (const framing of ['Content-Length: 12345', 'Transfer-Encoding: chunked', 'X-None: 1']) {
      const answer = await answerTo(`HTTP/1.1 200 OK\r\nX-A: 1\r\n${framing}\r\n\r\n`, 'HEAD')
      expect([answer.status, value(answer, 'x-a'), answer.body.length]).toEqual([200, '1', 0])
      expect(value(answer, 'content-length')).toBe(framing.startsWith('Content-Length') ? '12345' : undefined)
    }
  })

  it.each([400, 401, 403, 404, 418, 429, 451, 500, 502, 503, 504, 599])(
    'a response with status %i from the upstream is relayed unchanged, and the request is not sent again',
    async status => {
      const before = at.upstream.heads
      const body = '{"error":"theirs"}'
      const answer = await answerTo(
        `HTTP/1.1 ${status} Whatever They Say\r\nRetry-After: 7\r\nContent-Type: application/problem+json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      expect([answer.status, answer.reason, answer.body.toString()]).toEqual([
        status,
        'Whatever They Say',
        body,
      ])
      expect(passed(answer)).toEqual([
        ['retry-after', '7'],
        ['content-type', 'application/problem+json'],
        ['content-length', String(body.length)],
      ])
      expect(at.upstream.heads - before).toBe(1)
    },
  )

  it('redirects are relayed and never followed', async () => {
    const before = at.upstream.heads
    const answer = await answerTo(
      'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n',
    )
    expect([answer.status, value(answer, 'location'), at.upstream.heads - before]).toEqual([
      302,
      'http://169.254.169.254/',
      1,
    ])
  })

  it.each([
    ['with chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    [
      'with a chunk extension',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n',
    ],
    ['without a reason', 'HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok'],
    ['with a reason in UTF-8', 'HTTP/1.1 200 Tr\xc3\xa8s bien \xe2\x82\xac\r\nContent-Length: 2\r\n\r\nok'],
    ['with a reason in latin1', 'HTTP/1.1 200 Tr\xe8s bien\r\nContent-Length: 2\r\n\r\nok'],
    ['of HTTP/1.0 with a length', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ])('a response %s is relayed', async (_, bytes) => {
    const answer = await answerTo(bytes)
    expect([answer.status, answer.body.toString(), answer.complete]).toEqual([200, 'ok', true])
  })

  it('interim responses are passed on with only their Link headers', async () => {
    at.upstream.script = socket =>
      socket.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nSet-Cookie: a=1\r\nContent-Length: 9\r\nlink: </b.js>; rel=preload\r\n\r\n' +
          'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      )
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x'))
    const answers = [await connection.answer(), await connection.answer(), await connection.answer()]
    connection.close()
    expect(answers.map(answer => answer?.status)).toEqual([103, 102, 200])
    expect(answers[0]?.fields).toEqual([
      ['link', '</a.css>; rel=preload'],
      ['link', '</b.js>; rel=preload'],
    ])
    expect([answers[1]?.fields, answers[2]?.body.toString()]).toEqual([[], 'ok'])
    const old = await ask(at.gateway.url, 'GET /public/x HTTP/1.0\r\n\r\n')
    expect(old?.status).toBe(200)
  })

  it('trailers are passed on, except headers that are allowed only in the response head or only from the gateway', async () => {
    const answer = await answerTo(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n2\r\nok\r\n0\r\nX-Checksum: abc\r\nX-Checksum: def\r\nX-Peage-Error: internal\r\nConnection: close\r\n\r\n',
    )
    expect([answer.body.toString(), answer.trailers]).toEqual([
      'ok',
      [
        ['x-checksum', 'abc'],
        ['x-checksum', 'def'],
      ],
    ])
  })

  const chunks = 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Checksum: abc\r\n\r\n'
  it.each([
    ['to HEAD', 'HEAD', '200 OK', 'Transfer-Encoding: chunked\r\n\r\n', ''],
    ['to HEAD, with a length', 'HEAD', '200 OK', 'Content-Length: 2\r\n\r\n', ''],
    ['with a length', 'GET', '200 OK', 'Content-Length: 2\r\n\r\nok', 'ok'],
    ['204', 'GET', '204 No Content', '\r\n', ''],
    ['304', 'GET', '304 Not Modified', '\r\n', ''],
    ['with chunks', 'GET', '200 OK', chunks, 'ok'],
  ])('only a chunked response keeps its Trailer header: %s', async (_, method, status, rest, body) => {
    const answer = await answerTo(`HTTP/1.1 ${status}\r\nTrailer: X-Checksum\r\nX-A: 1\r\n${rest}`, method)
    expect([answer.status, value(answer, 'x-a'), String(answer.body)]).toEqual([
      Number(status.slice(0, 3)),
      '1',
      body,
    ])
    expect([value(answer, 'trailer'), answer.trailers]).toEqual(
      rest === chunks ? ['X-Checksum', [['x-checksum', 'abc']]] : [undefined, []],
    )
  })

  it('an HTTP/1.0 client gets a response without trailers or chunks', async () => {
    at.upstream.script = socket => socket.write(`HTTP/1.1 200 OK\r\nTrailer: X-Checksum\r\n${chunks}`)
    const answer = await ask(at.gateway.url, 'GET /public/x HTTP/1.0\r\n\r\n')
    expect([answer?.status, String(answer?.body)]).toEqual([200, 'ok'])
    expect(answer && value(answer, 'transfer-encoding')).toBeUndefined()
  })

  it('a response without a length is complete when the upstream closes the connection', async () => {
    at.upstream.script = socket => socket.end('HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nto the end')
    const answer = await ask(at.gateway.url, requestBytes('GET', '/public/x'))
    expect([answer?.body.toString(), answer?.complete]).toEqual(['to the end', true])
  })
})
