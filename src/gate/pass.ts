// Lets a request through to its upstream: only one that was counted, which the type of its identity tells.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Forwarding, forward } from '../upstream/forward.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Arrival } from './arrival.ts'
import type { Counted } from './count-daily-use.ts'
import type { Route } from './route.ts'
import type { Target } from './target.ts'
import { upstreamFields } from './upstream-fields.ts'

interface Passing extends Pick<Forwarding, 'onAnswer' | 'onEnd'> {
  request: IncomingMessage
  response: ServerResponse
  arrival: Arrival
  route: Route
  target: Target
  identity: Counted
}

/** @throws Refusal where the upstream gave no answer */
export type Pass = (passing: Passing) => Promise<void>

/** @param bodyIdle milliseconds between two chunks of a client's body (`server.timeouts.body_idle`) */
export function createPass(upstreams: Upstreams, bodyIdle: number): Pass {
  return ({ request, response, arrival, route, target, identity, onAnswer, onEnd }) => {
    const upstream = upstreams.get(route.upstream)
    return forward({
      request,
      response,
      upstream,
      path: route.upstreamPath(target) + target.query,
      fields: upstreamFields({ request, arrival, route, target, identity, upstreamHost: upstream.host }),
      hasBody: arrival.hasBody,
      responseTimeout: route.timeout ?? upstream.timeouts.response,
      maxBody: route.max_body,
      bodyIdle,
      requestId: arrival.requestId,
      eventStreams: upstreams.eventStreams,
      expectsContinue: arrival.expectsContinue,
      onAnswer,
      onEnd,
    })
  }
}
