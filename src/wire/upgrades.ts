// Requests that would leave HTTP: those that may are asked like any other, and all the rest are read again as plain ones.
import * as http from 'node:http'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * With a listener for `upgrade` Node gives every such request away with its connection, HTTP/2's `h2c` too. What may
 * not upgrade is a plain request (RFC 9110 §7.8), so the parser is given it again without the field.
 * @param mayUpgrade whether a request goes on as `request` event whose response can `takeOver` the connection
 */
export function routeUpgrades(server: Server, mayUpgrade: (request: IncomingMessage) => boolean): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', destroyThis)
    afterAnswers(socket, () => {
      if (socket.destroyed) return
      if (mayUpgrade(request)) ask(server, request, socket, head)
      else readAgain(server, request, socket, head)
    })
  })
}

/**
 * Ends HTTP on the connection of a response: from now on its bytes are the caller's. The response stays with it, and
 * closes when it closes. For requests that came through `routeUpgrades` alone.
 */
export function takeOver(response: ServerResponse): Socket {
  const letGo = holds.get(response)
  if (letGo === undefined || response.socket === null) throw new Error('a connection that was not upgrading')
  letGo()
  return response.socket
}

const holds = new WeakMap<ServerResponse, () => void>()

function destroyThis(this: Socket): void {
  this.destroy()
}

/** Requests before it on the same connection are answered first. */
function afterAnswers(socket: Socket, go: () => void): void {
  const { _httpMessage: pending } = socket as Socket & { _httpMessage?: ServerResponse | null }
  if (pending) pending.once('close', () => afterAnswers(socket, go))
  else go()
}

/** What Node does for a plain request's response, as far as the last one of a connection needs it. */
function ask(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.setTimeout(0)
  // What the client sent too early waits there until somebody takes the connection over.
  if (head.length > 0) socket.unshift(head)
  const onReadable = () => {
    // To be told of the end; reading none leaves the bytes where they are.
    if (socket.readableLength === 0) socket.read(0)
  }
  const onEnd = () => socket.destroy()
  const onDrain = () => response.emit('drain')
  const letGo = () => {
    holds.delete(response)
    socket.off('readable', onReadable).off('end', onEnd).off('drain', onDrain)
  }
  holds.set(response, letGo)
  socket.on('readable', onReadable).on('end', onEnd).on('drain', onDrain)
  response.once('finish', () => {
    letGo()
    endAfterAnswer(socket)
  })
  server.emit('request', request, response)
}

/** Half-closes and reads on for a moment, so that a reset does not overtake the answer. */
function endAfterAnswer(socket: Socket): void {
  socket.end()
  socket.resume()
  socket.once('end', () => socket.destroySoon())
  const timer = setTimeout(() => socket.destroy(), 500)
  socket.once('close', () => clearTimeout(timer))
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
}
