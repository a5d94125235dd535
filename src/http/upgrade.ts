// `Upgrade` requests: those that may upgrade are dispatched like any other, the rest are parsed again as plain ones.
import * as http from 'node:http'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { endGracefully } from './lingering-close.ts'
import { afterPendingResponses, bufferWhilePending } from './pipelined-upgrade.ts'

/**
 * With an `upgrade` listener Node hands over every such request with its connection, HTTP/2's `h2c` too. A request
 * that may not upgrade is a plain request (RFC 9110 §7.8), so the parser receives it again without the header.
 * @param mayUpgrade whether to emit the request as a `request` event, with a response that `detachSocket` accepts
 */
export function routeUpgrades(server: Server, mayUpgrade: (request: IncomingMessage) => boolean): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', destroySocket)
    afterPendingResponses(socket, head, earlyBytes => {
      if (mayUpgrade(request)) dispatchUpgrade(server, request, socket, earlyBytes)
      else reparseWithoutUpgrade(server, request, socket, earlyBytes)
    })
  })
}

/**
 * Ends HTTP on the response's connection: from now on its bytes are the caller's. The response stays attached, and
 * closes when the connection closes. Only for requests that came through `routeUpgrades`.
 */
export function detachSocket(response: ServerResponse): Socket {
  const { socket } = response
  const stopBuffering = bufferedUpgrades.get(response)
  if (stopBuffering === undefined || socket === null) throw new Error('a connection that was not upgrading')
  bufferedUpgrades.delete(response)
  socket.setTimeout(0)
  socket.unshift(stopBuffering())
  return socket
}

const bufferedUpgrades = new WeakMap<ServerResponse, () => Buffer>()

function destroySocket(this: Socket): void {
  this.destroy()
}

/** Does what Node does for a plain request's response, as far as the last response of a connection needs it. */
function dispatchUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.setTimeout(server.timeout)
  // A client sends nothing before its 101 (RFC 6455 §4.1); bytes that still come go to `detachSocket`'s caller.
  const stopBuffering = bufferWhilePending(socket, head, () => {
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

/** node:http calls this for every connection that it accepts. Its name has not changed since Node 0.5. */
const { _connectionListener: connectionListener } = http as unknown as {
  _connectionListener(this: Server, socket: Socket): void
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
  connectionListener.call(server, socket)
  socket.resume()
}
