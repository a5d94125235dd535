// How a listener ends: it accepts nothing more, answers what is in flight, and cuts off what is not done in time.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

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
  const silent = new Set<Socket>()
  server.on('connection', socket => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', request => silent.delete(request.socket))

  return {
    async run(time) {
      for (const socket of silent) socket.destroy()
      // Those whose answer is under way become idle one by one.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
      const cut = setTimeout(() => server.closeAllConnections(), time)
      try {
        await app.close()
      } finally {
        clearInterval(idle)
        clearTimeout(cut)
      }
    },
  }
}
