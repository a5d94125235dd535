// Many pipelined requests on one connection (RFC 9112 §9.3.2) must not fill the memory or block other clients.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { ask, RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('pipelined requests', () => {
  const at = stage(embeddedSetup)

  // One write contains all bytes, so the gateway reads the last bytes before it sends the first response.
  it.each([
    ['an invalid chunk', requestBytes('POST', '/nowhere', ['Transfer-Encoding: chunked'], 'zz\r\n')],
    [
      'bytes that are not a request',
      Buffer.concat([requestBytes('GET', '/nowhere'), Buffer.from('?\r\n\r\n')]),
    ],
    [
      'too many further requests',
      Buffer.concat(Array.from({ length: 150 }, () => requestBytes('GET', '/nowhere'))),
    ],
  ])(
    'if the connection ends because of %s, the client still receives the first refusal',
    async (_, bytes) => {
      const connection = new RawConnection(at.gateway.url)
      connection.write(bytes)
      expect((await connection.answer())?.status).toBe(404)
      connection.close()
    },
  )

  it('in a batch of 100,000 make the gateway close their connection, and do not delay other clients', async () => {
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
