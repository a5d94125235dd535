// Guards decide before the gateway sends "100 Continue", and every client gets a final response (RFC 9110 §10.1.1).
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { chunked, RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

const expects = 'Expect: 100-continue'

describe('the Expect header', () => {
  const at = stage(embeddedSetup, {
    more: `  - { name: limited, path: /limited, upstream: app, auth: none, max_body: 1KiB }
  - { name: read-only, path: /read-only, upstream: app, auth: none, methods: [GET] }
  - { name: pro, path: /pro, upstream: app, plans: [pro] }
`,
  })

  async function opened(method: string, target: string, lines: string[]) {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes(method, target, lines))
    return connection
  }

  it.each([
    ['no credential', guarded, [], 'token_invalid'],
    ['an insufficient plan', '/pro', ['credential'], 'plan_insufficient'],
    ['an unknown route', '/nothing', [], 'route_unknown'],
    ['an undeclared method', '/read-only', [], 'method_not_allowed'],
    ['an invalid path', '/public/%2e%2e/x', [], 'path_invalid'],
    [
      'two credentials',
      guarded,
      ['Authorization: Bearer a', 'Authorization: Bearer b'],
      'credentials_ambiguous',
    ],
    ['a declared length over max_body', '/limited', ['Content-Length: 2048'], 'body_too_large'],
    ['a declared length over 64 KiB', '/api/v1/auth/login', ['Content-Length: 70000'], 'body_too_large'],
  ])('a request with %s is refused without a 100', async (_, target, given, code) => {
    const lines = given.map(line =>
      line === 'credential' ? `Authorization: Bearer ${at.user.access}` : line,
    )
    const length = lines.some(line => line.startsWith('Content-Length')) ? [] : ['Content-Length: 5']
    const connection = await opened('POST', target, [...lines, ...length, expects])
    expectRefusal(await connection.answer(), code)
    // The gateway must close the connection, because it cannot know whether the client still sends the body.
    expect(await connection.endsWithin(2_000)).toBe(true)
    connection.close()
    expect(at.upstream.seen).toEqual([])
  })

  it.each([
    ['declared', ['Content-Length: 5'], Buffer.from('five!')],
    ['chunked', ['Transfer-Encoding: chunked'], chunked('fi', 've!')],
  ])('an accepted request gets a 100, then its response (%s)', async (_, framing, body) => {
    const connection = await opened('POST', '/public/x', [...framing, expects])
    expect((await connection.answer())?.status).toBe(100)
    connection.write(body)
    expect((await connection.answer())?.status).toBe(200)
    expect(at.upstream.seen.map(seen => seen.body.toString())).toEqual(['five!'])
    expect(at.upstream.seen[0]?.fields.map(([name]) => name)).not.toContain('expect')
    connection.close()
  })

  it('a request to an endpoint of the gateway gets a 100, and its connection stays open', async () => {
    const connection = await opened('POST', '/api/v1/auth/logout', [
      'Content-Length: 2',
      expects.toUpperCase(),
    ])
    expect((await connection.answer())?.status).toBe(100)
    connection.write('{}')
    expect((await connection.answer())?.status).toBe(200)
    connection.write(requestBytes('GET', '/public/x'))
    expect((await connection.answer())?.status).toBe(200)
    connection.close()
  })

  it('a client that sends the body without waiting for the 100 gets its response', async () => {
    const connection = await opened('POST', '/public/x', ['Content-Length: 5', expects])
    connection.write('five!')
    const statuses = (await connection.answers()).map(answer => answer.status)
    expect(statuses).toEqual([100, 200])
    connection.close()
  })

  it('an HTTP/1.0 client gets no 100', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(`POST /public/x HTTP/1.0\r\n${expects}\r\nContent-Length: 5\r\n\r\nfive!`)
    expect((await connection.answers()).map(answer => answer.status)).toEqual([200])
    connection.close()
  })

  it('a streamed body that is too large gets a 413 after the 100', async () => {
    const connection = await opened('POST', '/limited', ['Transfer-Encoding: chunked', expects])
    expect((await connection.answer())?.status).toBe(100)
    connection.write(chunked('x'.repeat(2_000)))
    expectRefusal(await connection.answer(), 'body_too_large')
    connection.close()
  })

  it.each(['banana', '100-continue, banana', '200-ok', '100-continue;q=1'])(
    'a request with Expect: %s is refused and not forwarded',
    async expectation => {
      const connection = await opened('POST', '/public/x', ['Content-Length: 5', `Expect: ${expectation}`])
      expectRefusal(await connection.answer(), 'request_invalid')
      expect(await connection.endsWithin(2_000)).toBe(true)
      expect(at.upstream.seen).toEqual([])
      connection.close()
    },
  )

  it('if the upstream closes its connection after the 100, the client gets a 502', async () => {
    at.upstream.answer = request => request.socket.destroy()
    const connection = await opened('POST', '/public/x', ['Content-Length: 5', expects])
    expect((await connection.answer())?.status).toBe(100)
    connection.write('five!')
    expectRefusal(await connection.answer(), 'upstream_unreachable')
    connection.close()
  })
})
