// Creates the client listener. It parses each request with the current snapshot, and handles it to its end.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { SecureContextOptions } from 'node:tls'
import fastify, { type FastifyInstance } from 'fastify'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import {
  installErrorHandlers,
  installExpectHandlers,
  type OnRefusal,
  onClientError,
} from '../http/error-handlers.ts'
import { createHttpServer } from '../http/http-server.ts'
import { isIdle, whenWritable } from '../http/pipelining.ts'
import { routeUpgrades } from '../http/upgrade.ts'
import type { ReceivedRequest, Tracing } from '../observability/tracing/tracing.ts'
import type { CompleteAtClose } from './completion.ts'
import { handleRequest, type ServeEndpoint } from './handle-request.ts'
import { RequestContext, type RequestSnapshot } from './request-context.ts'
import { contextOf, createServeEndpoint, registerEndpoints, servedPath } from './serve-endpoint.ts'

interface Options {
  /** The current snapshot. A request keeps the snapshot with which it was parsed. */
  current(): RequestSnapshot
  /** The timeouts at the start, in milliseconds. A reload changes them with `setTimeouts`. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  tls: SecureContextOptions | undefined
  tracing: Tracing | undefined
  /** Creates an ID for a request that has no valid ID. */
  newRequestId(): string
  /** Called for each request that an untrusted private peer forwards for another client. */
  onUntrustedForwarder(peer: string): void
  completeAtClose: CompleteAtClose
}

/** Fastify serves only the gateway's own endpoints. All other requests are handled before Fastify. */
export function createClientListener(options: Options): FastifyInstance {
  const { current, timeouts, tls } = options
  let serveEndpoint: ServeEndpoint
  const onRefusal: OnRefusal = (request, refusal) => contextOf(request).noteRefusal(refusal)
  const app = fastify({
    serverFactory(serve): Server {
      serveEndpoint = createServeEndpoint(serve)
      return createHttpServer({ timeouts, tls, isIdle }, (request, response) => {
        const startedAt = performance.now()
        // While a pipelined response is queued, it emits no `close`. So work starts only when the response owns the
        // socket.
        whenWritable(request, response, () => begin(request, response, startedAt))
      })
    },
    genReqId: request => contextOf(request).requestId,
    rewriteUrl: () => servedPath,
    clientErrorHandler: onClientError,
    // While the gateway drains, requests on open connections are served normally.
    return503OnClosing: false,
  })
  installErrorHandlers(app, onRefusal)
  installExpectHandlers(app.server)
  routeUpgrades(app.server, request => {
    const { gate } = current()
    const routing = gate.decide(request, gate.parse(request))
    return (routing.kind === 'route' || routing.kind === 'refused') && routing.isWebSocket
  })
  registerEndpoints(app)
  return app

  function begin(request: IncomingMessage, response: ServerResponse, startedAt: number): void {
    const snapshot = current()
    snapshot.acquire()
    const head = snapshot.gate.parse(request)
    const routing = snapshot.gate.decide(request, head)
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
