// An upstream that sends exactly the bytes that a test specifies, for example an invalid or incomplete response.
import { createServer, type Socket } from 'node:net'

export interface ScriptedUpstream {
  readonly url: string
  /** The number of received request heads. */
  heads: number
  /** The number of accepted connections. */
  connections: number
  /** Called for each received request head. */
  script: (socket: Socket, head: string) => void
  close(): Promise<void>
}

export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    upstream.connections += 1
    sockets.add(socket)
    let received = ''
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      for (let end = received.indexOf('\r\n\r\n'); end !== -1; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end)
        received = received.slice(end + 4)
        upstream.heads += 1
        upstream.script(socket, head)
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    heads: 0,
    connections: 0,
    script: socket => socket.destroy(),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return upstream
}
