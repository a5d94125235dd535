// The limits in `server.timeouts` prevent slow clients from holding resources that other clients need.
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('slow clients', () => {
  const at = stage(embeddedSetup, {
    settings: { server: ', timeouts: { headers: 500ms, body_idle: 400ms, keep_alive: 600ms }' },
  })

  it.each([
    ['nothing', ''],
    ['half a request line', 'GET /pub'],
    ['half a head', 'GET /public/x HTTP/1.1\r\nHost: gw.test\r\nX: '],
  ])('are refused and disconnected if they send %s', async (_, bytes) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(bytes)
    expectRefusal(await connection.answer(), 'request_invalid')
    expect(await connection.endsWithin(1_000)).toBe(true)
    connection.close()
  })

  it('are refused after `timeouts.headers` if they send a head byte by byte', async () => {
    const connection = new RawConnection(at.gateway.url)
    const bytes = requestBytes('GET', '/public/x', [`X-Slow: ${'x'.repeat(10_000)}`])
    let sent = 0
    const drip = setInterval(() => connection.write(bytes.subarray(sent, ++sent)), 20)
    expectRefusal(await connection.answer(), 'request_invalid')
    clearInterval(drip)
    expect(at.upstream.seen).toEqual([])
    connection.close()
  })

  it.each([
    ['an endpoint of the gateway', '/api/v1/auth/login'],
    ['a proxied route', '/public/x'],
  ])('are refused in French if they stall while they send a body to %s', async (_, target) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', target, ['Content-Length: 100'], 'a beginning'))
    expectRefusal(await connection.answer(), 'request_invalid')
    expect(await connection.endsWithin(1_000)).toBe(true)
    expect(at.upstream.seen.filter(seen => seen.complete)).toEqual([])
    connection.close()
  })

  it('are refused if they send a body to an endpoint of the gateway byte by byte, even without a pause', async () => {
    const connection = new RawConnection(at.gateway.url)
    const begun = performance.now()
    connection.write(requestBytes('POST', '/api/v1/auth/login', ['Content-Length: 5000']))
    const drip = setInterval(() => connection.write('{'), 50)
    expectRefusal(await connection.answer(), 'request_invalid')
    expect(performance.now() - begun).toBeLessThan(2_000)
    clearInterval(drip)
    connection.close()
  })

  it('are not refused if a slow upstream delays the body', async () => {
    at.upstream.answer = (request, response) => {
      setTimeout(() => {
        let received = 0
        request.on('data', (chunk: Buffer) => (received += chunk.length))
        request.on('end', () => response.writeHead(200, { 'x-upstream': 'yes' }).end(String(received)))
      }, 1_200)
    }
    const body = Buffer.alloc(16 * 1024 * 1024)
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/public/x', [`Content-Length: ${body.length}`]))
    await connection.writeAll(body)
    expect((await connection.answer())?.body.toString()).toBe(String(body.length))
    connection.close()
  })

  it('are disconnected if they do not read a long response, and the upstream connection is closed', async () => {
    let left = () => {}
    const upstreamWasLeft = new Promise<void>(resolve => {
      left = resolve
    })
    at.upstream.answer = (_, response) => {
      response.on('close', left)
      response.writeHead(200)
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) {}
        response.once('drain', more)
      }
      more()
    }
    const connection = new RawConnection(at.gateway.url)
    connection.socket.pause()
    connection.write(requestBytes('GET', '/public/x'))
    await upstreamWasLeft
    connection.close()
  })

  it('are disconnected within 8 s if they stall while they send the body of a refused request', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', guarded, ['Content-Length: 100000'], 'a beginning'))
    expectRefusal(await connection.answer(), 'token_invalid')
    expect(await connection.endsWithin(8_000)).toBe(true)
    connection.close()
  })

  it('are disconnected after `timeouts.keep_alive` if they keep a connection idle', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x'))
    expect((await connection.answer())?.status).toBe(200)
    expect(await connection.endsWithin(4_000)).toBe(true)
    connection.close()
  })
})
