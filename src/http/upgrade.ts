// Requests that would leave HTTP: those that may are asked like any other, and all the rest are read again as plain ones.
import * as http from 'node:http'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { hangUp } from './lingering-close.ts'
import { afterAnswers, attend } from './pipelined-upgrade.ts'

/**
 * With a listener for `upgrade` Node gives every such request away with its connection, HTTP/2's `h2c` too. What may
 * not upgrade is a plain request (RFC 9110 §7.8), so the parser is given it again without the field.
 * @param mayUpgrade whether a request goes on as `request` event whose response can `takeOver` the connection
 */
export function routeUpgrades(server: Server, mayUpgrade: (request: IncomingMessage) => boolean): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', destroyThis)
    afterAnswers(socket, head, early => {
      if (mayUpgrade(request)) ask(server, request, socket, early)
      else readAgain(server, request, socket, early)
    })
  })
}

/**
 * Ends HTTP on the connection of a response: from now on its bytes are the caller's. The response stays with it, and
 * closes when it closes. For requests that came through `routeUpgrades` alone.
 */
export function takeOver(response: ServerResponse): Socket {
  const { socket } = response
  const letGo = holds.get(response)
  if (letGo === undefined || socket === null) throw new Error('a connection that was not upgrading')
  holds.delete(response)
  socket.setTimeout(0)
  socket.unshift(letGo())
  return socket
}

const holds = new WeakMap<ServerResponse, () => Buffer>()

function destroyThis(this: Socket): void {
  this.destroy()
}

/** What Node does for a plain request's response, as far as the last one of a connection needs it. */
function ask(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.setTimeout(server.timeout)
  // No client has anything to say before its 101 (RFC 6455 §4.1); what it says all the same goes to who takes over.
  const letGo = attend(socket, head, () => {
    if (response.headersSent) socket.pause()
    else socket.destroy()
  })
  holds.set(response, letGo)
  response.once('finish', () => {
    holds.delete(response)
    letGo()
    hangUp(socket)
  })
  server.emit('request', request, response)
}

/** What node:http does to every connection that it accepts. Its name has been the same since Node 0.5. */
const { _connectionListener: readRequests } = http as unknown as {
  _connectionListener(this: Server, socket: Socket): void
}

function readAgain(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { rawHeaders } = request
  let text = `${request.method} ${request.url} HTTP/${request.httpVersion}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.toLowerCase() !== 'upgrade') text += `${name}: ${rawHeaders[i + 1]}\r\n`
  }
  socket.off('error', destroyThis)
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
  readRequests.call(server, socket)
  socket.resume()
}
