// A TCP relay that can silently stop passing bytes on, like a network that drops packets.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface StallingRelay {
  /** The URL of the server through the relay. */
  readonly url: string
  /** The number of connections that the relay has accepted. */
  readonly made: number
  /** Starts a stall: the relay accepts connections and bytes, but passes nothing on in either direction. */
  stall(): void
  /** Ends the stall: passes on the bytes that were held back during the stall, and all later bytes. */
  flow(): void
  close(): Promise<void>
}

export async function startStallingRelay(target: string): Promise<StallingRelay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isStalled = false
  let made = 0
  let waiting: (() => void)[] = []

  function pass(work: () => void): void {
    if (isStalled) waiting.push(work)
    else work()
  }

  const server = createServer(client => {
    made += 1
    const upstream = connect(Number(port), hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', bytes => pass(() => to.write(bytes)))
      from.on('close', () => {
        sockets.delete(from)
        pass(() => to.destroy())
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    get made() {
      return made
    },
    stall() {
      isStalled = true
    },
    flow() {
      isStalled = false
      const works = waiting
      waiting = []
      for (const work of works) work()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
