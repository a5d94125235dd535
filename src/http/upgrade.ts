// Handles requests with `Upgrade`. A request that is allowed to upgrade is dispatched with its connection. All others
// are parsed again as plain requests.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { type RefusalForm, refuseHandedOver } from './error-handlers.ts'
import { endGracefully } from './lingering-close.ts'
import { attachResponse } from './node-internals.ts'
import { bufferWhilePending, isUnanswered, whenAnswered } from './pipelining.ts'

/**
 * Installs an `upgrade` listener. Node then hands over every request with `Upgrade` together with its connection, even
 * for HTTP/2's `h2c`. If `mayUpgrade` returns false, the parser receives the request again without this header, as a
 * plain request (RFC 9110 §7.8). If an earlier request of the connection has no response yet, the new request is
 * refused and the connection ends.
 * @param mayUpgrade returns whether the request is allowed to upgrade; if so, it is emitted as a `request` event, with
 *   a response that `detachSocket` accepts
 */
export function routeUpgrades(
  server: Server,
  mayUpgrade: (request: IncomingMessage) => boolean,
  form: RefusalForm,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', destroySocket)
    if (isUnanswered(socket)) refuseHandedOver(server, socket, head, form)
    // The client may already have received the whole previous response, so its new request is valid. That response may
    // not have closed yet, so the new request waits until it closes.
    else
      whenAnswered(server, socket, head, received => {
        if (mayUpgrade(request)) dispatchUpgrade(server, request, socket, received)
        else reparseWithoutUpgrade(server, request, socket, received)
      })
  })
}

/**
 * Ends HTTP on the connection of the response, and returns the connection. The caller then reads and writes all of its
 * bytes. The response stays attached, and closes when the connection closes. Works only for requests that
 * `routeUpgrades` has emitted.
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
  // A client should send nothing before it receives the 101 (RFC 6455 §4.1). If bytes still arrive earlier, they are
  // kept for the caller of `detachSocket`.
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
