// The gateway refuses requests that are too large. The client can read the refusal, because the connection is not reset
// too early (RFC 9112 §9.6).
import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { framedRequest, inChunks, jsonPad } from './generated-bodies.ts'
import { expectRefusal } from './invariants.ts'
import { ask, RawConnection, requestBytes, value } from './raw-client.ts'
import { stage } from './stage.ts'

const mebibyte = 1024 * 1024
const endpoints = ['register', 'login', 'refresh', 'logout'].map(name => `/api/v1/auth/${name}`)
const expects = 'Expect: 100-continue'
const fields = ['Content-Type: application/json']

describe('oversized requests', () => {
  const at = stage(embeddedSetup, {
    more: '  - { name: limited, path: /limited, upstream: app, auth: none, max_body: 1KiB }\n',
  })
  const declared = (path: string, lines: string[] = []) =>
    requestBytes(
      'POST',
      path,
      [...fields, ...lines, `Content-Length: ${2 * mebibyte}`],
      jsonPad(2 * mebibyte),
    )
  const chunked = (path: string, lines: string[] = []) =>
    framedRequest('POST', path, [...fields, ...lines], inChunks(jsonPad(2 * mebibyte)))
  const bodies = [
    ['declared', declared],
    ['chunked', chunked],
  ] as const
  const paths = [...endpoints, '/limited']

  describe.each(bodies)('with a body of 2 MiB (%s)', (_, bytes) => {
    it.each(paths)(
      '%s sends a 413 that a client can read after it has sent the body, and the connection stays open',
      async path => {
        const connection = new RawConnection(at.gateway.url)
        connection.socket.pause()
        expect(await connection.writeAll(bytes(path))).toBe(true)
        connection.socket.resume()
        expectRefusal(await connection.answer(), 'body_too_large')
        connection.write(requestBytes('POST', '/api/v1/auth/logout', ['Content-Length: 2'], '{}'))
        const next = await connection.answer()
        expect([next?.status, next?.body.toString()]).toEqual([200, '{"message":"Déconnexion réussie"}'])
        connection.close()
      },
    )

    it.each([
      ['Connection: close', ['Connection: close']],
      ['Expect', ['Expect: 100-continue']],
      ['Expect and close', ['Expect: 100-continue', 'Connection: close']],
    ])('with %s, the client receives a 413 before the connection ends', async (_, lines) => {
      for (let round = 0; round < 5; round++) {
        for (const path of ['/api/v1/auth/login', '/limited']) {
          const connection = new RawConnection(at.gateway.url)
          const broken = new Promise<boolean>(resolve =>
            connection.socket.once('error', () => resolve(false)),
          )
          connection.socket.pause()
          const sent = await Promise.race([connection.writeAll(bytes(path, lines)), broken])
          // The gateway must accept all bytes. If it reset the connection, the client would lose the response.
          expect(sent).toBe(true)
          connection.socket.resume()
          expectRefusal(await connection.finalAnswer(), 'body_too_large')
          expect(await connection.endsWithin(2_000)).toBe(true)
          connection.close()
        }
      }
    })
  })

  it('an HTTP/1.0 client receives a 413', async () => {
    const bytes = declared('/api/v1/auth/login').toString('latin1').replace('HTTP/1.1', 'HTTP/1.0')
    const connection = new RawConnection(at.gateway.url)
    connection.socket.pause()
    expect(await connection.writeAll(Buffer.from(bytes, 'latin1'))).toBe(true)
    connection.socket.resume()
    expectRefusal(await connection.answer(), 'body_too_large')
    connection.close()
  })

  it.each(['declared', 'chunked'])(
    'a client library receives a 413 while it is still sending a %s body',
    async framing => {
      for (const keepAlive of [true, false]) {
        const heard = await new Promise<number | undefined>((resolve, reject) => {
          const request = httpRequest(`${at.gateway.url}/api/v1/auth/login`, {
            method: 'POST',
            headers: {
              ...(framing === 'declared' ? { 'content-length': 2 * mebibyte } : {}),
              ...(keepAlive ? {} : { connection: 'close' }),
            },
          })
          request.on('response', response => {
            resolve(response.statusCode)
            response.resume()
            request.destroy()
          })
          request.on('error', reject)
          const chunk = Buffer.alloc(65_536, 0x20)
          let left = (2 * mebibyte) / chunk.length
          const send = () => {
            if (request.destroyed) return
            left -= 1
            if (left < 0) request.end()
            else request.write(chunk, () => setImmediate(send))
          }
          send()
        })
        expect(heard).toBe(413)
      }
    },
  )

  it.each([
    { lines: [] },
    { lines: ['Connection: close'] },
    { lines: [expects] },
    { lines: [expects, 'Connection: close'] },
  ])(
    'with the headers $lines, the client gets no reset if it sends the body after the response',
    async ({ lines }) => {
      const body = Buffer.alloc(8 * mebibyte, 0x20)
      const connection = new RawConnection(at.gateway.url)
      const broken = new Promise<string>(resolve =>
        connection.socket.once('error', error => resolve(error.message)),
      )
      const length = `Content-Length: ${body.length}`
      connection.write(requestBytes('POST', '/api/v1/auth/login', [...lines, length]))
      expectRefusal(await connection.answer(), 'body_too_large')
      const sent = (async () => {
        for (let at = 0; at < body.length; at += 65_536) {
          connection.write(body.subarray(at, at + 65_536))
          await new Promise(resolve => setImmediate(resolve))
        }
        return 'all of it'
      })()
      expect(await Promise.race([sent, broken])).toBe('all of it')
      connection.close()
    },
  )

  it('a client that sends a body without end is disconnected', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/api/v1/auth/login', [...fields, 'Content-Length: 10737418240']))
    expectRefusal(await connection.answer(), 'body_too_large')
    const chunk = Buffer.alloc(mebibyte, 0x20)
    let sent = 0
    while (sent < 256 && (await connection.writeAll(chunk))) sent += 1
    expect(sent).toBeLessThan(256)
    connection.close()
  })

  it('a streamed body over max_body gets a 413, and the upstream never receives a complete request', async () => {
    const request = framedRequest('POST', '/limited', fields, inChunks(Buffer.alloc(1025), 400))
    const answer = await ask(at.gateway.url, request)
    expectRefusal(answer, 'body_too_large')
    expect(at.upstream.seen.filter(seen => seen.complete)).toEqual([])
    const exact = framedRequest('POST', '/limited', fields, inChunks(Buffer.alloc(1024), 400))
    expect((await ask(at.gateway.url, exact))?.status).toBe(200)
  })

  it.each([
    ['one header of 16 KiB', [`X-Big: ${'A'.repeat(16_384)}`]],
    ['one header of 100 KiB', [`X-Big: ${'A'.repeat(102_400)}`]],
    ['a thousand small headers', Array.from({ length: 1_000 }, (_, i) => `X-${i}: 123456789`)],
    ['five thousand empty headers', Array.from({ length: 5_000 }, () => 'a:')],
    ['a header name of 17 KiB', [`${'x'.repeat(17_408)}: 1`]],
    ['a credential of 17 KiB', [`Authorization: Bearer ${'x'.repeat(17_408)}`]],
    ['a cookie of 17 KiB', [`Cookie: ${'x'.repeat(17_408)}`]],
  ])('a request with %s gets a 431, and the connection is closed', async (_, lines) => {
    for (const path of ['/public/x', '/api/v1/private', '/api/v1/auth/login']) {
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('GET', path, lines))
      const answer = await connection.answer()
      expectRefusal(answer, 'headers_too_large')
      expect(answer && value(answer, 'connection')).toBe('close')
      expect(await connection.endsWithin(1_000)).toBe(true)
      connection.close()
    }
    expect(at.upstream.seen).toEqual([])
  })

  it('a header of 15 KiB is accepted and forwarded', async () => {
    const answer = await ask(
      at.gateway.url,
      requestBytes('GET', '/public/x', [`X-Big: ${'A'.repeat(15_000)}`]),
    )
    expect(answer?.status).toBe(200)
  })

  it('a target of 20 KiB is refused in French', async () => {
    expectRefusal(
      await ask(at.gateway.url, requestBytes('GET', `/public/${'x'.repeat(20_000)}`)),
      'headers_too_large',
    )
  })
})
