// A webhook receiver: a TLS server on loopback that counts its connections.

import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

export interface Receiver {
  readonly port: number
  /** The number of TCP connections accepted so far. */
  readonly connections: number
  /** The number of TCP connections that are open now. */
  readonly open: number
  readonly server: Server
  close(): Promise<void>
}

/** @param host the address to listen at; by default, all addresses @param port the port; 0 for a free port */
export async function startReceiver(
  certificate: { cert: string; key: string },
  answer: RequestListener,
  host?: string,
  port = 0,
): Promise<Receiver> {
  const server = createServer({ cert: certificate.cert, key: certificate.key }, answer)
  const sockets = new Set<Duplex>()
  let connections = 0
  server.on('connection', socket => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen({ port, host }, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    server,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
