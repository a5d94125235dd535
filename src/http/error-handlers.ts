// Installs error handlers, so that the gateway sends its own refusals instead of the errors of Fastify and Node.
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify'
import type { Language } from '../refusals/catalog.ts'
import { fieldsWithLimits } from '../refusals/limits.ts'
import { ClientDisconnected, Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import { StorageError } from '../storage/database.ts'
import { endDeferred, flushDeferred } from './deferred-writes.ts'
import { endGracefully, isEnding, lingeringClose, markEnding } from './lingering-close.ts'
import { isLastResponse } from './node-internals.ts'
import { isInBody, pendingResponse, whenAnswered } from './pipelining.ts'

/**
 * Receives every refusal and unexpected error, for the log.
 * @returns the additional headers for the response, as alternating names and values
 */
export type OnRefusal = (request: IncomingMessage, refusal: Refusal) => readonly string[]

/** Describes how a listener writes its refusals. */
export interface RefusalForm {
  /** Returns the language of the active configuration. */
  language(): Language
  /** Additional headers of responses to invalid requests, as alternating names and values. */
  readonly fields?: readonly string[]
}

export function installErrorHandlers(app: FastifyInstance, onRefusal: OnRefusal, form: RefusalForm): void {
  app.setErrorHandler((thrown: FastifyError, _request, reply) =>
    sendFastifyRefusal(reply, thrown, onRefusal, form),
  )
  app.setNotFoundHandler((_request, reply) =>
    sendFastifyRefusal(reply, new Refusal('route_unknown'), onRefusal, form),
  )
  // When a client half-closes its connection, Node ends the connection. The deferred responses are sent before that.
  app.server.on(app.server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    // After a request with `Upgrade`, this event is emitted a second time for the same socket. The listener then
    // already exists.
    if (!socket.listeners('end').includes(flushDeferred)) socket.prependListener('end', flushDeferred)
  })
  app.server.on('connect', (_request, socket: Socket, head) => {
    socket.on('error', () => socket.destroy())
    refuseHandedOver(app.server, socket, head, form)
  })
}

/** Sends a refusal. Fastify also calls this, as `frameworkErrors`, if its router cannot parse the URL. */
export function sendFastifyRefusal(
  reply: FastifyReply,
  thrown: unknown,
  onRefusal: OnRefusal,
  { language }: Pick<RefusalForm, 'language'>,
): void {
  reply.hijack()
  sendRefusal(reply.raw, thrown, onRefusal, language())
}

/**
 * Sends a refusal on a response that has not started.
 * @param statusOf a function that returns the status code to send; by default, the status of the refusal is sent
 */
export function sendRefusal(
  response: ServerResponse,
  thrown: unknown,
  onRefusal: OnRefusal,
  language: Language,
  statusOf?: (status: number) => number,
): void {
  if (thrown instanceof ClientDisconnected) return
  const { req: request } = response
  const refusal = toRefusal(thrown)
  const { fields, body } = refusal.response(language)
  const allFields = fieldsWithLimits(fields, onRefusal(request, refusal))
  // After a refusal, a client that waited for `100 Continue` may or may not send its body. So the connection cannot be
  // used for another request, and is closed.
  if (request.headers.expect !== undefined && !fields.includes('connection'))
    allFields.push('connection', 'close')
  lingeringClose(request, response, isLastResponse(response) || allFields.includes('connection'))
  const status = statusOf?.(refusal.status) ?? refusal.status
  endDeferred(response.writeHead(status, STATUS_CODES[status], allFields), body)
}

/** Handles an error of a connection or of its HTTP parser. Fastify calls this as `clientErrorHandler`. */
export function onClientError(error: Error & { code?: string }, socket: Duplex, form: RefusalForm): void {
  if (isEnding(socket)) return
  // After other errors, for example a failed TLS handshake, the client cannot read a response.
  if (!/^(HPE|ERR_HTTP)_/.test(error.code ?? '') || !socket.writable) {
    socket.destroy()
    return
  }
  flushDeferred()
  markEnding(socket)
  const code = error.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : 'request_invalid'
  endAfterPendingResponses(socket, new Refusal(code), form)
}

/**
 * Sends a refusal after the responses to earlier requests. If the refusal were sent first, the client would read it as
 * one of these responses.
 */
function endAfterPendingResponses(socket: Duplex, refusal: Refusal, form: RefusalForm): void {
  const pending = pendingResponse(socket)
  if (!socket.writable) return
  if (pending?.req.complete) pending.once('close', () => endAfterPendingResponses(socket, refusal, form))
  // The invalid request already has its response. The client would read a second response as the response to another
  // request.
  else if (pending?.writableEnded) pending.once('close', () => endGracefully(socket as Socket))
  else if (pending === undefined && isInBody(socket)) endGracefully(socket as Socket)
  // The response has begun, so the client would read a refusal as a part of it.
  else if (pending?.headersSent) socket.destroy()
  else endWithRefusal(socket, refusal, form)
}

/**
 * Refuses a request whose connection Node has handed over (`upgrade` or `connect`). The responses to earlier requests
 * are sent first.
 * @param head the bytes that followed the request
 */
export function refuseHandedOver(server: Server, socket: Socket, head: Buffer, form: RefusalForm): void {
  whenAnswered(server, socket, head, () => endWithRefusal(socket, new Refusal('request_invalid'), form))
}

function endWithRefusal(socket: Duplex, refusal: Refusal, form: RefusalForm): void {
  socket.write(serializeRefusal(refusal, form))
  endGracefully(socket as Socket)
}

/** Handles requests with `Expect` as usual, so the guards decide before `100 Continue` is sent (RFC 9110 §10.1.1). */
export function installExpectHandlers(server: Server): void {
  serveEvent(server, 'checkContinue')
  installExpectationHandler(server)
}

/** Serves requests with an `Expect` other than `100-continue`. Node would respond 417 without a body. */
export function installExpectationHandler(server: Server): void {
  serveEvent(server, 'checkExpectation')
}

function serveEvent(server: Server, event: 'checkContinue' | 'checkExpectation'): void {
  server.on(event, (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response)
  })
}

/** Converts an error into a refusal. Storage errors become 503 `service_unavailable`, other errors 500 `internal`. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  if (thrown instanceof StorageError) return serviceUnavailable(thrown)
  return new Refusal('internal', { cause: thrown })
}

/**
 * Returns the whole response as bytes. They are written directly to the socket, because the HTTP parser rejected the
 * request or handed over the connection.
 */
function serializeRefusal(refusal: Refusal, form: RefusalForm): Buffer {
  const { status } = refusal
  const { fields: ofRefusal, body } = refusal.response(form.language())
  const fields = [...ofRefusal, ...(form.fields ?? [])]
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`, 'latin1')
}
