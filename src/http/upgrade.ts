// Handles requests with `Upgrade`. A request that may upgrade is dispatched with its connection. Every other request
// with `Upgrade` is parsed again as a plain request.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { type RefusalForm, refuseHandedOver } from './error-handlers.ts'
import { endGracefully } from './lingering-close.ts'
import { attachResponse } from './node-internals.ts'
import { bufferWhilePending, isUnanswered, whenAnswered } from './pipelining.ts'

/**
 * Installs an `upgrade` listener. With this listener, Node hands over every request with `Upgrade` and its connection,
 * including HTTP/2's `h2c`. A request that may not upgrade is a plain request (RFC 9110 §7.8), so the parser receives
 * it again without the header. If an earlier request has no response yet, the request is refused and its connection
 * ends.
 * @param mayUpgrade a function that returns whether to emit the request as a `request` event, with a response that
 *   `detachSocket` accepts
 */
export function routeUpgrades(
  server: Server,
  mayUpgrade: (request: IncomingMessage) => boolean,
  form: RefusalForm,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', destroySocket)
    if (isUnanswered(socket)) refuseHandedOver(server, socket, head, form)
    // Waits until the previous response has closed. The client may already have received all of it.
    else
      whenAnswered(server, socket, head, received => {
        if (mayUpgrade(request)) dispatchUpgrade(server, request, socket, received)
        else reparseWithoutUpgrade(server, request, socket, received)
      })
  })
}

/**
 * Ends HTTP on the connection of the response. From now on, the bytes of the connection belong to the caller. The
 * response stays attached, and closes when the connection closes. Works only for requests that came through
 * `routeUpgrades`.
 */
export function detachSocket(response: ServerResponse): Socket {
  const { socket } = response
  const stopBuffering = bufferedUpgrades.get(response)
  if (stopBuffering === undefined || socket === null) throw new Error('the connection is not upgrading')
  bufferedUpgrades.delete(response)
  socket.setTimeout(0)
  socket.unshift(stopBuffering())
  return socket
}

const bufferedUpgrades = new WeakMap<ServerResponse, () => Buffer>()

function destroySocket(this: Socket): void {
  this.destroy()
}

/**
 * Emits the request with a response, as Node does for a plain request. The response is the last of its connection, so
 * it needs no preparation for later requests.
 */
function dispatchUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = attachResponse(request)
  socket.setTimeout(server.timeout)
  // A client sends nothing before it receives the 101 (RFC 6455 §4.1). If bytes arrive earlier, the caller of
  // `detachSocket` receives them.
  const stopBuffering = bufferWhilePending(server, socket, head, () => {
    if (response.headersSent) socket.pause()
    else socket.destroy()
  })
  bufferedUpgrades.set(response, stopBuffering)
  response.once('finish', () => {
    bufferedUpgrades.delete(response)
    stopBuffering()
    endGracefully(socket)
  })
  server.emit('request', request, response)
}

function reparseWithoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { rawHeaders } = request
  let text = `${request.method} ${request.url} HTTP/${request.httpVersion}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.toLowerCase() !== 'upgrade') text += `${name}: ${rawHeaders[i + 1]}\r\n`
  }
  socket.off('error', destroySocket)
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
  // Each of these events passes the connection to the server's HTTP parser.
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
  socket.resume()
}
