// Forwards an allowed request to its upstream, with the path, headers, limits and callbacks of its route.
import type { ServerResponse } from 'node:http'
import type { Admission } from '../gate/guards/admission.ts'
import { bearerPrefix, parseOfferedProtocols } from '../gate/parsing/websocket-handshake.ts'
import { replacedHeaders } from '../gate/routing/cors.ts'
import type { ToRoute } from '../gate/routing/decision.ts'
import type { Route } from '../gate/routing/route.ts'
import { clientKeyOf } from '../identity/client-key.ts'
import type { Identity } from '../identity/identity.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import { forward } from '../upstream/forward.ts'
import type { ForwardObserver, ForwardOptions } from '../upstream/forward-options.ts'
import { cancelReservation } from '../upstream/reservation.ts'
import type { ResponseHeaderRules } from '../upstream/response-head.ts'
import type { WebSocketHandshake } from '../upstream/websocket/websocket-upgrade.ts'
import type { OpenStreams } from './open-streams.ts'
import { buildUpstreamHeaders, propagatesTrace, type ReceivedRequest } from './upstream-headers.ts'

/**
 * The request to forward. It also observes the exchange with the upstream. RequestContext implements this interface.
 */
interface ForwardedRequest extends ReceivedRequest, ForwardObserver {
  readonly response: ServerResponse
  readonly trace: RequestTrace | undefined
  /** Headers that are added to every response, from the upstream or from the gateway. */
  readonly headers: Readonly<Record<string, string>> | undefined
}

/**
 * Forwards a request, and takes over the reserved connection of its `Admission`. Only the guards create an `Admission`,
 * after they have counted the use.
 */
export type ForwardRequest = (request: ForwardedRequest, routing: ToRoute, admission: Admission) => void

interface Settings {
  /** Maximum time between two chunks of a client's body (`server.timeouts.body_idle`). */
  bodyIdleTimeoutMs: number
  /** `auth.logout_ends_access`. */
  logoutEndsStreams: boolean
}

export function createForwardRequest(
  assertions: Assertions,
  openStreams: Pick<OpenStreams, 'add'>,
  { bodyIdleTimeoutMs, logoutEndsStreams: endsWithSession }: Settings,
): ForwardRequest {
  function webSocketOf({ request }: ForwardedRequest, route: Route, identity: Identity): WebSocketHandshake {
    const { bearers, others } = parseOfferedProtocols(request.headers['sec-websocket-protocol'])
    return {
      key: String(request.headers['sec-websocket-key']),
      offeredProtocols: others,
      fallbackProtocol: bearers[0] === undefined ? undefined : bearerPrefix + bearers[0],
      onOpen: tunnel =>
        openStreams.add({
          kind: 'web_socket',
          identity,
          endsWithSession,
          route,
          end: reason => tunnel.close(reason === 'stopping' ? 1001 : 1008),
        }),
    }
  }

  function optionsFor(
    context: ForwardedRequest,
    routing: ToRoute,
    { identity, reservation }: Admission,
    assertion: string | undefined,
  ): ForwardOptions {
    const { request, response, head, trace } = context
    const { route, target } = routing
    const { upstream } = route
    return {
      request,
      response,
      upstream,
      client: clientKeyOf(identity, head.client),
      reservation,
      path: route.upstreamPath(target) + target.query,
      host: route.upstreamHost,
      fields: buildUpstreamHeaders(context, routing, identity, assertion),
      hasBody: head.hasBody,
      contentLength: head.contentLength,
      responseTimeoutMs: route.timeout ?? upstream.timeouts.response,
      maxBodyBytes: route.max_body,
      bodyIdleTimeoutMs,
      requestId: context.requestId,
      responseHeaderRules: responseRulesFor(route, context.headers, routing.cors !== undefined),
      onEventStream: end => openStreams.add({ kind: 'event_stream', identity, endsWithSession, route, end }),
      webSocket: routing.isWebSocket ? webSocketOf(context, route, identity) : undefined,
      expectsContinue: head.expectsContinue,
      trace: trace?.forwardTo(route.upstreamName, propagatesTrace(route)),
      observer: context,
    }
  }

  function send(context: ForwardedRequest, routing: ToRoute, admission: Admission, assertion?: string): void {
    let options: ForwardOptions
    try {
      options = optionsFor(context, routing, admission, assertion)
    } catch (error) {
      cancelReservation(admission.reservation)
      context.onRefused(error)
      return
    }
    void forward(options)
  }

  return (context, routing, admission) => {
    const { route } = routing
    const { identity, reservation } = admission
    if (!route.identity_assertion || identity.kind !== 'user') {
      send(context, routing, admission)
      return
    }
    assertions.tokenFor(identity, route.upstreamName).then(
      assertion => send(context, routing, admission, assertion),
      error => {
        cancelReservation(reservation)
        context.onRefused(error)
      },
    )
  }
}

/**
 * Returns the response rules of the route, followed by the headers that the gateway adds.
 * @param fields the CORS and rate-limit headers for this request
 * @param isCors whether `fields` contains CORS headers. If so, they replace the CORS headers of the upstream and of the
 *   route.
 */
function responseRulesFor(
  route: Route,
  fields: Readonly<Record<string, string>> | undefined,
  isCors: boolean,
): ResponseHeaderRules | undefined {
  if (fields === undefined) return route.responseRules
  const { set, remove } = isCors ? withoutCors(route) : (route.responseRules ?? noRules)
  // The headers in `fields` are added after the upstream's headers of the same name. They do not replace the upstream's
  // headers, because `Vary` and `RateLimit` are lists (RFC 9110 §5.3).
  return { set: [...set, ...Object.entries(fields).flat()], remove }
}

const noRules: ResponseHeaderRules = { set: [], remove: new Set() }

const withoutCorsOf = new WeakMap<Route, ResponseHeaderRules>()

/**
 * Returns the response rules of the route for responses to which the gateway adds CORS headers. They are computed once
 * per route, because they are the same for every request.
 */
function withoutCors(route: Route): ResponseHeaderRules {
  let rules = withoutCorsOf.get(route)
  if (rules === undefined) {
    const { set, remove } = route.responseRules ?? noRules
    const remaining = set.flatMap((name, index) =>
      index % 2 === 0 && !replacedHeaders.has(name.toLowerCase()) ? [name, set[index + 1] as string] : [],
    )
    rules = { set: remaining, remove: new Set([...remove, ...replacedHeaders]) }
    withoutCorsOf.set(route, rules)
  }
  return rules
}
