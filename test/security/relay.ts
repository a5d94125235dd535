// A TCP relay in front of a shared server. If a test stops the relay, only the client of the relay loses the server.
import { connect, createServer, type Socket } from 'node:net'
import type { Stores } from '../support/gateway.ts'
import type { Setup } from '../support/setups.ts'

export interface Relay {
  /** The URL at which the server can be reached through the relay. */
  readonly url: string
  /** Closes all connections and refuses new ones. */
  stop(): Promise<void>
}

async function startRelay(target: string): Promise<Relay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const upstream = connect(Number(port), hostname)
    for (const end of [socket, upstream]) {
      sockets.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        sockets.delete(end)
        socket.destroy()
        upstream.destroy()
      })
    }
    socket.pipe(upstream).pipe(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    async stop() {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Puts a relay in front of a real Postgres. Other tests use the same Postgres, so a test stops only the relay. */
export function throughRelay(setup: Setup) {
  const relayed: { relay: Relay | undefined; setup: Setup } = {
    relay: undefined,
    setup: {
      ...setup,
      async open() {
        direct = await setup.open()
        if (direct.postgres === '') return direct
        relayed.relay = await startRelay(direct.postgres)
        return { ...direct, postgres: relayed.relay.url }
      },
      async drop(stores) {
        await relayed.relay?.stop()
        await setup.drop(direct ?? stores)
      },
    },
  }
  let direct: Stores | undefined
  return relayed
}
