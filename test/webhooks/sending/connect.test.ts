// Before the first write, the gateway checks the address to which the socket is actually connected.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { connect } from '../../../src/webhooks/sending/connect.ts'

it('a connection to an address that is not public is closed before a byte is written', async () => {
  let bytes = 0
  let closed = 0
  const server = createServer(socket => {
    socket.on('data', chunk => {
      bytes += chunk.length
    })
    socket.on('close', () => {
      closed += 1
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const { signal } = new AbortController()
  const request = { addresses: ['127.0.0.1'], port, host: 'hooks.test', timeoutMs: 1_000, signal }
  await expect(connect({ ...request, isTls: true, allowPrivate: false })).rejects.toMatchObject({
    reason: 'address',
  })
  await expect.poll(() => closed).toBe(1)
  expect(bytes).toBe(0)
  server.close()
})
