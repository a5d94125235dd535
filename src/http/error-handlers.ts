// Every door through which Fastify and node:http would say no in English says it our way.
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify'
import { ClientDisconnected } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'
import { serializeRefusal, toRefusal } from './answer.ts'
import { endDeferred, flushDeferred } from './deferred-writes.ts'
import { endGracefully, isEnding, lingeringClose, markEnding } from './lingering-close.ts'
import { afterPendingResponses, isInBody, pendingResponse } from './pipelined-upgrade.ts'

/**
 * Told of every refusal and fault, for the log.
 * @returns what its answer carries beside its own fields, names and values in turn
 */
export type OnRefusal = (request: IncomingMessage, refusal: Refusal) => readonly string[]

export function installErrorHandlers(app: FastifyInstance, onRefusal: OnRefusal): void {
  app.setErrorHandler((thrown: FastifyError, _request, reply) => sendFastifyRefusal(reply, thrown, onRefusal))
  app.setNotFoundHandler((_request, reply) =>
    sendFastifyRefusal(reply, new Refusal('route_unknown'), onRefusal),
  )
  // Node ends a connection whose client has said all that it will say.
  app.server.on(app.server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.prependListener('end', flushDeferred)
  })
  app.server.on('connect', (_request, socket: Socket, head) => {
    socket.on('error', () => socket.destroy())
    afterPendingResponses(socket, head, () => endWithRefusal(socket, new Refusal('request_invalid')))
  })
}

/** For Fastify's `frameworkErrors`: a URL that its router cannot read. */
export function sendFastifyRefusal(reply: FastifyReply, thrown: unknown, onRefusal: OnRefusal): void {
  reply.hijack()
  sendRefusal(reply.raw, thrown, onRefusal)
}

/** Answers a response that nobody has begun to answer. */
export function sendRefusal(response: ServerResponse, thrown: unknown, onRefusal: OnRefusal): void {
  if (thrown instanceof ClientDisconnected) return
  const { req: request } = response
  const refusal = toRefusal(thrown)
  const { fields, body } = refusal.response
  const allFields = fields.concat(onRefusal(request, refusal))
  // A client that still waits for `100 Continue` may or may not send its body now: the connection is not reusable.
  if (request.headers.expect !== undefined && !fields.includes('connection'))
    allFields.push('connection', 'close')
  lingeringClose(request, response, !response.shouldKeepAlive || allFields.includes('connection'))
  endDeferred(response.writeHead(refusal.status, STATUS_CODES[refusal.status], allFields), body)
}

/** For Fastify's `clientErrorHandler`: what the HTTP parser refused. */
export function onClientError(error: Error & { code?: string }, socket: Duplex): void {
  if (isEnding(socket)) return
  // What is not about HTTP is about the connection, a failed TLS handshake included: nobody reads an answer there.
  if (!/^(HPE|ERR_HTTP)_/.test(error.code ?? '') || !socket.writable) {
    socket.destroy()
    return
  }
  flushDeferred()
  markEnding(socket)
  const code = error.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : 'request_invalid'
  endAfterPendingResponses(socket, new Refusal(code))
}

/** The refusal is of what came last: the requests before it are answered first, or it would pass for their answer. */
function endAfterPendingResponses(socket: Duplex, refusal: Refusal): void {
  const pending = pendingResponse(socket)
  if (!socket.writable) return
  if (pending?.req.complete) pending.once('close', () => endAfterPendingResponses(socket, refusal))
  // What the parser failed in was answered before its end: a second answer would pass for that of another request.
  else if (pending?.writableEnded) pending.once('close', () => endGracefully(socket as Socket))
  else if (pending === undefined && isInBody(socket)) endGracefully(socket as Socket)
  // Half a response with another behind it would be read as one.
  else if (pending?.headersSent) socket.destroy()
  else endWithRefusal(socket, refusal)
}

function endWithRefusal(socket: Duplex, refusal: Refusal): void {
  socket.write(serializeRefusal(refusal))
  endGracefully(socket as Socket)
}

/** `Expect` reaches the guards as any request does: they answer before any `100 Continue` (RFC 9110 §10.1.1). */
export function installExpectHandlers(server: Server): void {
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request: IncomingMessage, response: ServerResponse) => {
      server.emit('request', request, response)
    })
  }
}
