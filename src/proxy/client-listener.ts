// Creates the client listener. It parses each request with the current snapshot, and handles the request until its end.
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
  /** Called for each request that a peer with a private address forwards, if the peer is not a trusted proxy. */
  onUntrustedForwarder(peer: string): void
  completeAtClose: CompleteAtClose
}

/** Fastify serves only the gateway's own endpoints. All other requests are handled without Fastify. */
export function createClientListener(options: Options): FastifyInstance {
  const { current, timeouts, tls } = options
  let serveEndpoint: ServeEndpoint
  const onRefusal: OnRefusal = (request, refusal) => contextOf(request).noteRefusal(refusal)
  const form = { language: () => current().language }
  const app = fastify({
    serverFactory(serve): Server {
      serveEndpoint = createServeEndpoint(serve)
      return createHttpServer({ timeouts, tls, isIdle }, (request, response) => {
        const startedAt = performance.now()
        // While a response waits for an earlier response on its connection, it emits no `close`. So work on a request
        // starts only when its response owns the socket.
        whenWritable(request, response, () => begin(request, response, startedAt))
      })
    },
    genReqId: request => contextOf(request).requestId,
    rewriteUrl: () => servedPath,
    clientErrorHandler: (error, socket) => onClientError(error, socket, form),
    // While the gateway drains, requests on open connections are served normally.
    return503OnClosing: false,
  })
  installErrorHandlers(app, onRefusal, form)
  installExpectHandlers(app.server)
  const mayUpgrade = (request: IncomingMessage) => {
    const { gate } = current()
    const routing = gate.decide(request, gate.parse(request))
    return (routing.kind === 'route' || routing.kind === 'refused') && routing.isWebSocket
  }
  routeUpgrades(app.server, mayUpgrade, form)
  registerEndpoints(app)
  return app

  function begin(request: IncomingMessage, response: ServerResponse, startedAt: number): void {
    const snapshot = current()
    snapshot.acquire()
    const { gate } = snapshot
    const question = gate.parseQuestion?.(request)
    const head = question === undefined ? gate.parse(request) : question.head
    const routing = question === undefined ? gate.decide(request, head) : gate.decide(question, head, true)
    if (head.untrustedForwarder !== undefined) options.onUntrustedForwarder(head.untrustedForwarder)
    const requestId = head.clientRequestId ?? options.newRequestId()
    const trace = options.tracing?.begin(
      request,
      receivedRequest(requestId, question ?? request, head, routing),
    )
    const context = new RequestContext(
      request,
      response,
      head,
      routing,
      snapshot,
      requestId,
      startedAt,
      trace,
      question,
    )
    options.completeAtClose(context)
    if (trace === undefined) handleRequest(context, serveEndpoint)
    else trace.run(() => handleRequest(context, serveEndpoint))
  }
}

function receivedRequest(
  requestId: string,
  { method = '', url = '' }: Pick<IncomingMessage, 'method' | 'url'>,
  { client, host }: RequestHead,
  routing: RoutingDecision,
): ReceivedRequest {
  const isQuestion = routing.kind === 'question'
  const route = routing.kind === 'route' || isQuestion ? routing.route.name : undefined
  return { requestId, method, url, client, host, template: templateOf(routing), route }
}

function templateOf(routing: RoutingDecision): string | undefined {
  if (routing.kind === 'local') return routing.path
  return routing.kind === 'preflight' ? undefined : routing.route?.path
}
