// Every door through which Fastify and node:http would say no in English says it our way.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { answerOf, rawAnswer, toRefusal } from './answer.ts'
import { ClientGone } from './client-gone.ts'
import { endOutgoing, isEnding, linger, markEnding } from './linger.ts'
import { Refusal } from './refusal.ts'

/** Told of every refusal and fault, for the log. */
export type OnRefusal = (request: FastifyRequest, refusal: Refusal) => void

export function installDoors(app: FastifyInstance, onRefusal: OnRefusal): void {
  app.setErrorHandler((thrown: FastifyError, request, reply) => refuse(request, reply, thrown, onRefusal))
  app.setNotFoundHandler((request, reply) => refuse(request, reply, new Refusal('route_unknown'), onRefusal))
  app.server.on('connect', (_request, socket) => endWith(socket, new Refusal('request_invalid')))
}

/** For Fastify's `frameworkErrors`: a URL that its router cannot read. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  thrown: unknown,
  onRefusal: OnRefusal,
): void {
  if (thrown instanceof ClientGone) {
    reply.hijack()
    return
  }
  const refusal = toRefusal(thrown)
  onRefusal(request, refusal)
  const { status, headers, body } = answerOf(refusal)
  // A client that still waits for `100 Continue` may or may not send its body now: the connection is not reusable.
  if (request.headers.expect !== undefined) reply.header('connection', 'close')
  linger(request.raw, reply.raw)
  reply.code(status).headers(headers).send(body)
}

/** For Fastify's `clientErrorHandler`: what the HTTP parser refused. */
export function refuseConnection(error: Error & { code?: string }, socket: Duplex): void {
  if (isEnding(socket)) return
  // What is not about HTTP is about the connection, a failed TLS handshake included: nobody reads an answer there.
  if (!/^(HPE|ERR_HTTP)_/.test(error.code ?? '') || !socket.writable) {
    socket.destroy()
    return
  }
  markEnding(socket)
  const code = error.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : 'request_invalid'
  endAfterAnswers(socket, new Refusal(code))
}

/** The refusal is of what came last: the requests before it are answered first, or it would pass for their answer. */
function endAfterAnswers(socket: Duplex, refusal: Refusal): void {
  const { _httpMessage: pending } = socket as Duplex & { _httpMessage?: ServerResponse | null }
  if (pending?.req.complete) pending.once('close', () => endAfterAnswers(socket, refusal))
  // Half a response with another behind it would be read as one.
  else if (pending?.headersSent) socket.destroy()
  else endWith(socket, refusal)
}

/** Half-closes and reads on for a moment, so that a reset does not overtake the answer. */
function endWith(socket: Duplex, refusal: Refusal): void {
  socket.on('error', () => socket.destroy())
  socket.write(rawAnswer(refusal))
  endOutgoing(socket as Socket)
  socket.resume()
  setTimeout(() => socket.destroy(), 500)
}

/** `Expect` reaches the guards as any request does: they answer before any `100 Continue` (RFC 9110 §10.1.1). */
export function routeExpectations(server: Server): void {
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request: IncomingMessage, response: ServerResponse) => {
      server.emit('request', request, response)
    })
  }
}
