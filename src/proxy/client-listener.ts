// The listener that clients reach: every request is parsed once, under the snapshot of the moment, and handled to its end.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import fastify, { type FastifyInstance } from 'fastify'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import {
  installErrorHandlers,
  installExpectHandlers,
  type OnRefusal,
  onClientError,
  sendFastifyRefusal,
} from '../http/error-handlers.ts'
import { createHttpServer } from '../http/http-server.ts'
import { isIdle, whenWritable } from '../http/pipelining.ts'
import { routeUpgrades } from '../http/upgrade.ts'
import type { ReceivedRequest, Tracing } from '../observability/tracing/tracing.ts'
import { startCountingBytes } from './bytes-sent.ts'
import type { OnComplete } from './completion.ts'
import { handleRequest, type ServeEndpoint } from './handle-request.ts'
import { RequestContext } from './request-context.ts'
import type { RequestSnapshot } from './request-snapshot.ts'
import { contextOf, createServeEndpoint, localPathOf, registerEndpoints } from './serve-endpoint.ts'

interface Options {
  /** Of the moment: each request is served to its end by the one under which it was parsed. */
  current(): RequestSnapshot
  /** Milliseconds, to begin with. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** The certificate to serve with; undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  tracing: Tracing | undefined
  /** A fresh request id, for clients that sent none. */
  newRequestId(): string
  /** Told of every request of a private peer that forwards for others and is not trusted. */
  onUntrustedForwarder(peer: string): void
  endRequest: OnComplete
}

/** Fastify serves our own endpoints; all else is decided before it. */
export function createClientListener(options: Options): FastifyInstance {
  const { current, timeouts, tls } = options
  let serveEndpoint: ServeEndpoint
  const onRefusal: OnRefusal = (request, refusal) => contextOf(request).noteRefusal(refusal)
  const app = fastify({
    serverFactory(serve): Server {
      serveEndpoint = createServeEndpoint(serve)
      return createHttpServer({ timeouts, tls, isIdle }, (request, response) => {
        const startedAt = performance.now()
        // A queued pipelined response emits no `close`, so nothing is done for it until it owns the socket.
        whenWritable(request, response, () => begin(request, response, startedAt))
      })
    },
    genReqId: request => contextOf(request).requestId,
    rewriteUrl: localPathOf,
    frameworkErrors: (error, _request, reply) => sendFastifyRefusal(reply, error, onRefusal),
    clientErrorHandler: onClientError,
    // While draining, what arrives on an open connection is answered as ever.
    return503OnClosing: false,
  })
  installErrorHandlers(app, onRefusal)
  installExpectHandlers(app.server)
  routeUpgrades(app.server, request => {
    const parsed = parse(current(), request)
    upgrading.set(request.socket, parsed)
    const { routing } = parsed
    return (routing.kind === 'route' || routing.kind === 'refused') && routing.isWebSocket
  })
  registerEndpoints(app)
  return app

  function begin(request: IncomingMessage, response: ServerResponse, startedAt: number): void {
    const snapshot = current()
    snapshot.acquire()
    const { head, routing } = takeParsed(snapshot, request.socket) ?? parse(snapshot, request)
    if (head.untrustedForwarder !== undefined) options.onUntrustedForwarder(head.untrustedForwarder)
    const requestId = head.clientRequestId ?? options.newRequestId()
    const trace = options.tracing?.begin(request, receivedRequest(requestId, head, routing))
    const context = new RequestContext(
      request,
      response,
      head,
      routing,
      snapshot,
      requestId,
      startedAt,
      trace,
    )
    if (snapshot.logRequest !== undefined) startCountingBytes(context, request.socket)
    response.on('close', () => options.endRequest(context))
    if (trace === undefined) handleRequest(context, serveEndpoint)
    else trace.run(() => handleRequest(context, serveEndpoint))
  }
}

interface ParsedRequest {
  readonly snapshot: RequestSnapshot
  readonly head: RequestHead
  readonly routing: RoutingDecision
}

function parse(snapshot: RequestSnapshot, request: IncomingMessage): ParsedRequest {
  const head = snapshot.gate.parse(request)
  return { snapshot, head, routing: snapshot.gate.decide(request, head) }
}

/** A request with `Upgrade` is parsed when Node hands its connection over; it is the next that is handled there. */
const upgrading = new WeakMap<Socket, ParsedRequest>()

/** Nothing where it was parsed under a snapshot that has been replaced since. */
function takeParsed(snapshot: RequestSnapshot, socket: Socket): ParsedRequest | undefined {
  const parsed = upgrading.get(socket)
  if (parsed === undefined) return undefined
  upgrading.delete(socket)
  return parsed.snapshot === snapshot ? parsed : undefined
}

/** As its span tells it. */
function receivedRequest(
  requestId: string,
  { client, host }: RequestHead,
  routing: RoutingDecision,
): ReceivedRequest {
  const route = routing.kind === 'route' ? routing.route.name : undefined
  return { requestId, client, host, template: templateOf(routing), route }
}

function templateOf(routing: RoutingDecision): string | undefined {
  if (routing.kind === 'local') return routing.path
  return routing.kind === 'preflight' ? undefined : routing.route?.path
}
