// Requests that pile up behind each other on one connection (RFC 9112 §9.3.2), to fill the memory or stop the clock.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { alone } from '../support/setups.ts'
import { ask, RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('pipelined requests', () => {
  const at = stage(alone)

  // In one write, so that what stands behind the request is read before anything has been answered.
  it.each([
    ['a chunk that is none', requestBytes('POST', '/nowhere', ['Transfer-Encoding: chunked'], 'zz\r\n')],
    ['what is no request', Buffer.concat([requestBytes('GET', '/nowhere'), Buffer.from('?\r\n\r\n')])],
    ['too many others', Buffer.concat(Array.from({ length: 150 }, () => requestBytes('GET', '/nowhere')))],
  ])('a refusal is heard whatever ends the connection behind it: %s', async (_, bytes) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(bytes)
    expect((await connection.answer())?.status).toBe(404)
    connection.close()
  })

  it('thousands of them end the connection, and nobody else waits meanwhile or as it ends', async () => {
    const { port } = new URL(at.gateway.url)
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    socket.pause()
    const closed = new Promise(resolve => socket.once('close', resolve))
    const request = requestBytes('GET', '/%2e')
    let longest = 0
    socket.write(Buffer.concat(Array.from({ length: 100_000 }, () => request)), () => socket.end())
    for (let count = 0; count < 20; count += 1) {
      const begun = performance.now()
      expect((await ask(at.gateway.url, requestBytes('GET', '/public/x'), 'GET'))?.status).toBe(200)
      longest = Math.max(longest, performance.now() - begun)
    }
    socket.resume()
    await closed
    expect(longest).toBeLessThan(1_000)
  })
})
