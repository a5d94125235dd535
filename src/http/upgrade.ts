// Requests that would leave HTTP: those that may are asked like any other, and all the rest are read again as plain ones.
import * as http from 'node:http'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { endGracefully } from './lingering-close.ts'
import { afterPendingResponses, bufferWhilePending } from './pipelined-upgrade.ts'

/**
 * With a listener for `upgrade` Node gives every such request away with its connection, HTTP/2's `h2c` too. What may
 * not upgrade is a plain request (RFC 9110 §7.8), so the parser is given it again without the field.
 * @param mayUpgrade whether a request goes on as `request` event whose response can `takeOver` the connection
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
 * Ends HTTP on the connection of a response: from now on its bytes are the caller's. The response stays with it, and
 * closes when it closes. For requests that came through `routeUpgrades` alone.
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

/** What Node does for a plain request's response, as far as the last one of a connection needs it. */
function dispatchUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.setTimeout(server.timeout)
  // No client has anything to say before its 101 (RFC 6455 §4.1); what it says all the same goes to who takes over.
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

/** What node:http does to every connection that it accepts. Its name has been the same since Node 0.5. */
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
