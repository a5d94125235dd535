// How a listener ends: it accepts nothing more, answers what is in flight, and cuts off what is not done in time.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { schemeOf } from '../http/http-server.ts'

export interface Drain {
  /**
   * Resolves when every connection has ended.
   * @param time milliseconds that requests in flight have
   */
  run(time: number): Promise<void>
}

/** Made before the listener listens: it has to know the connections from their beginning. */
export function createDrain(app: FastifyInstance): Drain {
  const server = app.server as Server
  // A connection on which nothing was asked yet is not idle to Node: it would be waited for until the end.
  const unusedSockets = new Set<Socket>()
  const trackUnused = (socket: Socket) => {
    unusedSockets.add(socket)
    socket.once('close', () => unusedSockets.delete(socket))
  }
  const handshaking = new Map<string, Socket>()
  if (schemeOf(app) === 'http') server.on('connection', trackUnused)
  else {
    // A connection is two sockets here, one around the other, and the outer one is told of after the handshake.
    server.on('connection', (inner: Socket) => {
      const peer = peerOf(inner)
      handshaking.set(peer, inner)
      inner.once('close', () => handshaking.get(peer) === inner && handshaking.delete(peer))
    })
    server.on('secureConnection', (outer: Socket) => {
      handshaking.delete(peerOf(outer))
      trackUnused(outer)
    })
  }
  server.on('request', request => unusedSockets.delete(request.socket))

  // Node counts those that left HTTP no more.
  const upgraded = new Set<Socket>()
  const trackUpgraded = (_request: IncomingMessage, socket: Socket) => {
    if (upgraded.has(socket)) return
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
  }
  server.on('upgrade', trackUpgraded).on('connect', trackUpgraded)

  return {
    async run(time) {
      for (const socket of [...unusedSockets, ...handshaking.values()]) socket.destroy()
      // Those whose answer is under way become idle one by one.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
      const cut = setTimeout(() => {
        server.closeAllConnections()
        for (const socket of upgraded) socket.destroy()
      }, time)
      try {
        await app.close()
      } finally {
        clearInterval(idle)
        clearTimeout(cut)
      }
    },
  }
}

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
