// Drains a listener. It accepts no more connections, finishes requests in flight, and closes the rest after a time
// limit.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { schemeOf } from '../http/http-server.ts'
import { keepSocketsWithUnsentData } from '../http/node-internals.ts'

export interface Drain {
  /** Resolves when every connection has ended. @param time milliseconds until open connections are destroyed */
  run(time: number): Promise<void>
}

/** Create the drain before the server listens, because the drain must track every connection from the start. */
export function createDrain(app: FastifyInstance): Drain {
  const server = app.server as Server
  // The connections on which no request has arrived yet. Node does not count these connections as idle. So without this
  // set, a drain would wait for them until the time limit.
  const unusedSockets = new Set<Socket>()
  const sockets = new Set<Socket>()
  const track = (socket: Socket) => {
    // `http/upgrade.ts` emits the `connection` event again when it returns a connection to the parser.
    if (sockets.has(socket)) return
    unusedSockets.add(socket)
    sockets.add(socket)
    socket.once('close', () => {
      unusedSockets.delete(socket)
      sockets.delete(socket)
    })
  }
  keepSocketsWithUnsentData(server, sockets)
  const handshaking = new Map<string, Socket>()
  if (schemeOf(app) === 'http') server.on('connection', track)
  else {
    // A TLS connection consists of two sockets. The outer socket is emitted only after the handshake.
    server.on('connection', (inner: Socket) => {
      const peer = peerOf(inner)
      handshaking.set(peer, inner)
      inner.once('close', () => handshaking.get(peer) === inner && handshaking.delete(peer))
    })
    server.on('secureConnection', (outer: Socket) => {
      handshaking.delete(peerOf(outer))
      track(outer)
    })
  }
  server.on('request', request => unusedSockets.delete(request.socket))

  // Node does not track upgraded connections.
  const upgraded = new Set<Socket>()
  const trackUpgraded = (_request: IncomingMessage, socket: Socket) => {
    if (upgraded.has(socket)) return
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
  }
  server.on('upgrade', trackUpgraded).on('connect', trackUpgraded)

  let accepted = 0
  /**
   * Until this time (`performance.now()`), the hook below accepts waiting connections. The time is well before the time
   * limit of the drain, so that requests on the last accepted connections can finish.
   */
  let acceptUntilMs = 0
  server.on('connection', () => {
    accepted += 1
  })
  // Accepts the connections that are already waiting. Right after this, the listener closes, and the kernel resets the
  // connections that are still waiting. The event loop accepts one connection per turn. A single turn without a new
  // connection does not prove that none is waiting, so the loop waits for two such turns.
  app.addHook('preClose', async () => {
    for (let turnsWithout = 0; turnsWithout < 2 && performance.now() < acceptUntilMs; ) {
      const before = accepted
      await setImmediate()
      turnsWithout = accepted === before ? turnsWithout + 1 : 0
    }
  })

  return {
    async run(time) {
      acceptUntilMs = performance.now() + Math.min(unusedGraceMs, time / 2)
      const cutUnused = setTimeout(
        () => {
          for (const socket of [...unusedSockets, ...handshaking.values()]) socket.destroy()
        },
        Math.min(unusedGraceMs, time),
      )
      // Connections become idle one by one when their responses finish.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
      const cut = setTimeout(() => {
        server.closeAllConnections()
        for (const socket of upgraded) socket.destroy()
      }, time)
      try {
        await app.close()
      } finally {
        clearInterval(idle)
        clearTimeout(cutUnused)
        clearTimeout(cut)
      }
    },
  }
}

/**
 * How long a connection without a request stays open during a drain. A request of the client may already be on its way,
 * for example over a long distance.
 */
const unusedGraceMs = 1_000

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
