// If the gateway responds before it has read the whole body, it never treats the rest of the body as a request.
import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { chunked, RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

const smuggled = 'GET /public/smuggled HTTP/1.1\r\nHost: gw.test\r\n\r\n'
const mebibyte = 1024 * 1024

describe('connection reuse', () => {
  const at = stage(embeddedSetup, {
    more: `  - { name: read-only, path: /read-only, upstream: app, auth: none, methods: [GET] }
  - { name: limited, path: /limited, upstream: app, auth: none, max_body: 1KiB }
`,
  })

  /** Sends a request that is refused and whose body looks like requests. Then sends one more request. */
  async function afterRefusal(target: string, lines: string[], inPieces: boolean) {
    const body = smuggled.repeat(50)
    const connection = new RawConnection(at.gateway.url)
    const head = requestBytes('POST', target, [...lines, `Content-Length: ${body.length}`])
    if (inPieces) {
      connection.write(head)
      const early = await connection.answer()
      connection.write(body)
      connection.write(requestBytes('GET', '/public/after'))
      return { connection, answers: [early, await connection.answer()] }
    }
    connection.write(Buffer.concat([head, Buffer.from(body), requestBytes('GET', '/public/after')]))
    return { connection, answers: [await connection.answer(), await connection.answer()] }
  }

  describe.each([
    ['a body sent after the refusal', true],
    ['a body sent with the head', false],
  ])('%s', (_, inPieces) => {
    it.each([
      ['401', guarded, [], 401],
      ['404', '/nothing', [], 404],
      ['405', '/read-only', [], 405],
      ['400 for a path', '/public/%2e%2e/', [], 400],
      ['400 for credentials', guarded, ['Authorization: Bearer a', 'Authorization: Bearer b'], 400],
      ['404 of the gateway’s own paths', '/api/v1/auth/nothing', [], 404],
      ['413', '/limited', [], 413],
    ])('is never read as a request after a %s', async (_, target, lines, status) => {
      const { connection, answers } = await afterRefusal(target, lines, inPieces)
      expect(answers.map(answer => answer?.status)).toEqual([status, 200])
      expect(at.upstream.seen.map(seen => seen.url)).toEqual(['/public/after'])
      await at.holds([])
      connection.close()
    })
  })

  it('a chunked body that was not read is read to its end before the next request', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', guarded, ['Transfer-Encoding: chunked']))
    expect((await connection.answer())?.status).toBe(401)
    connection.write(chunked(smuggled, smuggled.repeat(10)))
    connection.write(requestBytes('GET', '/public/after'))
    expect((await connection.answer())?.status).toBe(200)
    expect(at.upstream.seen.map(seen => seen.url)).toEqual(['/public/after'])
    connection.close()
  })

  it.each(['declared', 'chunked'])(
    'if the upstream responds before the end of a %s body, the connection is usable after the body',
    async framing => {
      at.upstream.answer = (_, response) => {
        response.writeHead(403, { 'x-upstream': 'yes', 'content-length': '2' }).end('no')
      }
      const body = Buffer.alloc(4 * mebibyte, smuggled)
      const connection = new RawConnection(at.gateway.url)
      const framed =
        framing === 'declared' ? [`Content-Length: ${body.length}`] : ['Transfer-Encoding: chunked']
      const bytes = framing === 'declared' ? body : chunked(body)
      connection.write(requestBytes('POST', '/public/upload', framed, bytes.subarray(0, 1_000)))
      expect((await connection.answer())?.status).toBe(403)
      at.upstream.answer = undefined
      await connection.writeAll(bytes.subarray(1_000))
      connection.write(requestBytes('GET', '/public/after'))
      expect((await connection.answer())?.status).toBe(200)
      expect(at.upstream.seen.map(seen => seen.url)).toEqual(['/public/upload', '/public/after'])
      connection.close()
    },
  )

  it.each([
    [
      'while it reads the body',
      (request: IncomingMessage, answer: () => void) => request.once('data', answer),
    ],
    // The upstream responds after 500 ms. By then, all buffers between client and upstream are full, so the gateway
    // reads nothing more.
    ['without reading the body', (_: IncomingMessage, answer: () => void) => setTimeout(answer, 500)],
  ])(
    'if the upstream responds %s, the client gets the response and can send its next request',
    async (_, when) => {
      at.upstream.answer = (request, response) => {
        when(request, () => response.writeHead(409, { 'x-upstream': 'yes', 'content-length': '2' }).end('no'))
      }
      const body = Buffer.alloc(8 * mebibyte, smuggled)
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('POST', '/public/upload', [`Content-Length: ${body.length}`]))
      const sending = connection.writeAll(body)
      expect((await connection.answer())?.status).toBe(409)
      at.upstream.answer = undefined
      expect(await sending).toBe(true)
      connection.write(requestBytes('GET', '/public/after'))
      expect((await connection.answer())?.status).toBe(200)
      expect(at.upstream.seen.map(seen => seen.url)).toEqual(['/public/upload', '/public/after'])
      connection.close()
    },
  )

  it('a hundred accepted and refused requests on one connection get their responses in order', async () => {
    const connection = new RawConnection(at.gateway.url)
    const kinds = [
      [requestBytes('GET', '/public/x'), 200],
      [requestBytes('POST', guarded, ['Content-Length: 5'], 'AAAAA'), 401],
      [requestBytes('POST', '/public/x', ['Transfer-Encoding: chunked'], chunked(smuggled)), 200],
      [requestBytes('PUT', '/nothing', ['Transfer-Encoding: chunked'], chunked(smuggled)), 404],
      [requestBytes('POST', '/api/v1/auth/login', ['Content-Length: 2'], '{}'), 400],
    ] as const
    const sent = Array.from({ length: 100 }, (_, i) => kinds[i % kinds.length] as (typeof kinds)[number])
    connection.write(Buffer.concat(sent.map(([bytes]) => bytes)))
    for (const [, status] of sent) expect((await connection.answer())?.status).toBe(status)
    await at.holds([])
    connection.close()
  })
})
