// Lets a request through to its upstream: only one that was counted, which the type of its identity tells.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Counted } from '../gate/guards/count-daily-use.ts'
import type { Arrival } from '../gate/parsing/request-head.ts'
import type { Target } from '../gate/parsing/request-target.ts'
import { bearerPrefix, offeredProtocols } from '../gate/parsing/websocket-handshake.ts'
import type { Route } from '../gate/routing/route.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import { forward } from '../upstream/forward.ts'
import type { Forwarding } from '../upstream/forward-options.ts'
import type { Upstreams } from '../upstream/targets/upstreams.ts'
import type { WebSocketAsked } from '../upstream/websocket/websocket-upgrade.ts'
import { answerRulesFor } from './answer-rules.ts'
import type { OpenStreams } from './open-streams.ts'
import { isToldOfTrace, upstreamFields } from './upstream-headers.ts'

interface Passing extends Pick<Forwarding, 'observer'> {
  request: IncomingMessage
  response: ServerResponse
  arrival: Arrival
  route: Route
  target: Target
  identity: Counted
  /** Fields that the answer carries whoever gives it. */
  answer: Readonly<Record<string, string>> | undefined
  trace: RequestTrace | undefined
}

/** What becomes of it is the observer's to hear. */
export type Pass = (passing: Passing) => void

/** @param bodyIdle milliseconds between two chunks of a client's body (`server.timeouts.body_idle`) */
export function createPass(
  upstreams: Pick<Upstreams, 'get'>,
  bodyIdle: number,
  assertions: Assertions,
  openStreams: Pick<OpenStreams, 'add'>,
): Pass {
  function webSocketOf({ request, identity, route: { plans } }: Passing): WebSocketAsked {
    const { bearers, others } = offeredProtocols(request.headers['sec-websocket-protocol'])
    return {
      key: String(request.headers['sec-websocket-key']),
      offered: others,
      fallback: bearers[0] === undefined ? undefined : bearerPrefix + bearers[0],
      onOpen: tunnel =>
        openStreams.add({
          kind: 'web_socket',
          identity,
          plans,
          end: reason => tunnel.close(reason === 'stopping' ? 1001 : 1008),
        }),
    }
  }

  function send(passing: Passing, assertion: string | undefined): void {
    const { request, response, arrival, route, target, identity, answer, trace, observer } = passing
    const upstream = upstreams.get(route.upstream)
    forward({
      request,
      response,
      upstream,
      path: route.upstreamPath(target) + target.query,
      host: route.upstreamHost,
      fields: upstreamFields({ request, arrival, route, target, identity, assertion, trace }),
      hasBody: arrival.hasBody,
      responseTimeout: route.timeout ?? upstream.timeouts.response,
      maxBody: route.max_body,
      bodyIdle,
      requestId: arrival.requestId,
      answerRules: answerRulesFor(route, answer, arrival.cors !== undefined),
      onEventStream: end => openStreams.add({ kind: 'event_stream', identity, plans: route.plans, end }),
      webSocket: arrival.wantsWebSocket ? webSocketOf(passing) : undefined,
      expectsContinue: arrival.expectsContinue,
      trace: trace?.forwardTo(route.upstream, isToldOfTrace(route)),
      observer,
    })
  }

  return passing => {
    const { route, identity, observer } = passing
    if (!route.identity_assertion || identity.kind !== 'user') send(passing, undefined)
    else {
      assertions
        .for(identity.user, route.upstream)
        .then(assertion => send(passing, assertion))
        .catch(fault => observer.onRefused(fault))
    }
  }
}
