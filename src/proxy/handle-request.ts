// Handles one request according to its routing decision: a route, a local endpoint, a preflight, a question of a proxy,
// or a refusal.
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import type { ChainResult } from '../gate/guards/chain.ts'
import type { ToQuestion, ToRoute } from '../gate/routing/decision.ts'
import { usualMethods } from '../gate/routing/route.ts'
import { endDeferred } from '../http/deferred-writes.ts'
import { lingeringClose } from '../http/lingering-close.ts'
import { readBodyless } from '../http/node-internals.ts'
import { Refusal } from '../refusals/refusal.ts'
import { noIdentity } from './identity-headers.ts'
import type { RequestContext } from './request-context.ts'

export type ServeEndpoint = (context: RequestContext, endpoint: LocalEndpoint) => void

export function handleRequest(context: RequestContext, serveEndpoint: ServeEndpoint): void {
  const { routing } = context
  if (routing.kind === 'route') serveRoute(context, routing)
  else if (routing.kind === 'local') serveEndpoint(context, routing.endpoint)
  else if (routing.kind === 'preflight') answerPreflight(context)
  else if (routing.kind === 'question') serveQuestion(context, routing)
  else context.refuse(routing.refusal)
}

/** Forwards the request, without Fastify between the socket and the upstream. */
function serveRoute(context: RequestContext, routing: ToRoute): void {
  if (!context.head.hasBody && !routing.isWebSocket) readBodyless(context.request)
  const result = routing.route.guards(context)
  if (result instanceof Promise) {
    result.then(settled => follow(context, routing, settled)).catch(error => context.refuse(error))
  } else follow(context, routing, result)
}

function follow(context: RequestContext, routing: ToRoute, result: ChainResult): void {
  if (!result.allowed) context.refuse(result.thrown)
  else if (context.head.isLastHop) answerLastHop(context, routing)
  else {
    context.decision = 'forwarded'
    context.snapshot.forward(context, routing, result)
  }
}

/**
 * Responds to a proxy that asks whether it may forward a client's request. If so, the proxy forwards the request, not
 * the gateway.
 */
function serveQuestion(context: RequestContext, { route }: ToQuestion): void {
  if (!context.head.hasBody) readBodyless(context.request)
  const answer = (result: ChainResult) => {
    if (result.allowed) context.snapshot.answerQuestion(context, route, result)
    else context.refuse(result.thrown)
  }
  const result = route.questionGuards(context)
  if (result instanceof Promise) result.then(answer).catch(error => context.refuse(error))
  else answer(result)
}

/**
 * If a proxy asks about a preflight, the proxy forwards the preflight after this response. So the response must contain
 * empty identity headers, which replace the client's headers.
 */
function answerPreflight(context: RequestContext): void {
  answerOptions(context, context.question === undefined ? [] : noIdentity)
}

/**
 * Responds to a request with `Max-Forwards: 0`. Refuses TRACE, because its response could reveal credentials (RFC 9110
 * §9.3.8).
 */
function answerLastHop(context: RequestContext, { route }: ToRoute): void {
  const methods = [...(route.allowedMethods ?? usualMethods)].filter(method => method !== 'TRACE')
  const allow = methods.join(', ')
  if (context.request.method === 'OPTIONS') answerOptions(context, ['allow', allow])
  else context.refuse(new Refusal('method_not_allowed', { headers: { allow } }))
}

/** @param fields additional response headers, alternating names and values */
function answerOptions(context: RequestContext, fields: readonly string[] = []): void {
  const { request, response, head } = context
  context.decision = 'answered'
  lingeringClose(request, response, true)
  // A client that waits for `100 Continue` receives this response instead. The client may then send or omit its body,
  // so the connection is not reusable.
  const last = head.expectsContinue ? ['connection', 'close'] : []
  response.writeHead(204, [...context.gatewayHeaders(), ...fields, ...last, 'cache-control', 'no-store'])
  endDeferred(response, '')
}
