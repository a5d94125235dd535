// The client listener: parses each request once, under the current snapshot, and serves it to its end.
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
import { schemaController } from '../openapi/response-body.ts'
import type { CompleteAtClose } from './completion.ts'
import { handleRequest, type ServeEndpoint } from './handle-request.ts'
import { RequestContext, type RequestSnapshot } from './request-context.ts'
import { contextOf, createServeEndpoint, localPathOf, registerEndpoints } from './serve-endpoint.ts'

interface Options {
  /** The current snapshot. A request is served to its end by the snapshot it was parsed under. */
  current(): RequestSnapshot
  /** Initial values in milliseconds; a reload changes them with `setTimeouts`. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** Undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  tracing: Tracing | undefined
  /** For requests that bring no safe id of their own. */
  newRequestId(): string
  /** Called for each request that an untrusted private peer forwards for another client. */
  onUntrustedForwarder(peer: string): void
  completeAtClose: CompleteAtClose
}

/** Fastify serves only the gateway's own endpoints; all other requests are handled before it. */
export function createClientListener(options: Options): FastifyInstance {
  const { current, timeouts, tls } = options
  let serveEndpoint: ServeEndpoint
  const onRefusal: OnRefusal = (request, refusal) => contextOf(request).noteRefusal(refusal)
  const app = fastify({
    schemaController,
    serverFactory(serve): Server {
      serveEndpoint = createServeEndpoint(serve)
      return createHttpServer({ timeouts, tls, isIdle }, (request, response) => {
        const startedAt = performance.now()
        // A queued pipelined response emits no `close`, so no work starts until it owns the socket.
        whenWritable(request, response, () => begin(request, response, startedAt))
      })
    },
    genReqId: request => contextOf(request).requestId,
    rewriteUrl: localPathOf,
    frameworkErrors: (error, _request, reply) => sendFastifyRefusal(reply, error, onRefusal),
    clientErrorHandler: onClientError,
    // While draining, requests on open connections are served as usual.
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
    options.completeAtClose(context)
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

/** A request with `Upgrade` is parsed at the `upgrade` event; the socket's next `request` event is that request. */
const upgrading = new WeakMap<Socket, ParsedRequest>()

/** Undefined if a reload has replaced the snapshot since: the request is then parsed again. */
function takeParsed(snapshot: RequestSnapshot, socket: Socket): ParsedRequest | undefined {
  const parsed = upgrading.get(socket)
  if (parsed === undefined) return undefined
  upgrading.delete(socket)
  return parsed.snapshot === snapshot ? parsed : undefined
}

/** The attributes of the request's span. */
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
