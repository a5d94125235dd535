// If a service responds and closes the connection during an upload, the client still receives the response.
import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startScriptedUpstream } from './scripted-upstream.ts'

const uploadBytes = 5_000_000
/**
 * The number of uploads in each test. One upload is not enough, because the bug that the tests would find affects only
 * about half of the uploads.
 */
const uploads = 20

describe('a service that closes the connection during an upload', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: app, path: /app, upstream: app, auth: none }
`,
  )

  /** Makes the service read only the request head, then respond and close the connection. */
  function respondAndClose(response: string, close: (socket: Socket) => void): void {
    at.upstream.script = socket => {
      socket.pause()
      socket.write(response, () => close(socket))
    }
  }

  async function upload() {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/app', [`Content-Length: ${uploadBytes}`]))
    const sending = connection.writeAll(Buffer.alloc(uploadBytes, 'a'))
    const answer = await connection.answer()
    connection.close()
    await sending
    return answer
  }

  it('can send a response that the client receives in each of 20 uploads', async () => {
    const refusal =
      'HTTP/1.1 413 Payload Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large'
    respondAndClose(refusal, socket => socket.destroy())
    for (let i = 0; i < uploads; i += 1) {
      const answer = await upload()
      expect([answer?.status, answer?.body.toString(), answer?.complete]).toEqual([413, 'too large', true])
    }
  })

  it('never causes a 200 that looks complete if it resets the connection during the response', async () => {
    const cutOff = 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf'
    respondAndClose(cutOff, socket => socket.resetAndDestroy())
    for (let i = 0; i < uploads; i += 1) {
      const answer = await upload()
      // If the reset arrives before the response head, the client receives a 502 or no response.
      expect(answer?.status === 200 && answer.complete).toBe(false)
    }
  })
})
