// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UpstreamTrace } from '../observability/tracing/tracing.ts'
import { ClientGone } from '../refusals/client-gone.ts'
import { dispatch } from './dispatch.ts'
import type { AnswerRules } from './response-headers.ts'
import type { Connection } from './targets/connection.ts'
import type { Connections } from './targets/connection-pool.ts'
import type { Target } from './targets/target.ts'
import type { Upstream } from './targets/upstreams.ts'
import type { WebSocketAsked } from './websocket/websocket-upgrade.ts'

export interface Forwarding {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** Path and query as the upstream is sent them. */
  readonly path: string
  /**
   * Names and values in turn; Host's comes first, and is that of the target in the end. `traceparent` comes next where
   * `trace` has one to tell, and is that of the try.
   */
  readonly fields: string[]
  /** Host's value where it is not to be the target's. */
  readonly host?: string | undefined
  readonly hasBody: boolean
  /** Milliseconds to the answer's head. */
  readonly responseTimeout: number
  /** Bytes of the request's body, `undefined` for no limit. */
  readonly maxBody: number | undefined
  /** Milliseconds in which the client must send or read something while it is its turn. */
  readonly bodyIdle: number
  readonly requestId: string
  /** What is changed in the upstream's answer, `undefined` for nothing. */
  readonly answerRules: AnswerRules | undefined
  /** Told of an answer that does not end by itself, and how to end it. @returns to be called when it has ended */
  onEventStream(end: () => void): () => void
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Where the client asks for a WebSocket: the upstream is asked for one too. */
  readonly webSocket?: WebSocketAsked | undefined
  /** Nothing where there are no traces. */
  readonly trace?: UpstreamTrace | undefined
  readonly observer: Observer
}

/** Who is told of each try, and how it ended: one of the last two, once. */
export interface Observer {
  /**
   * @param target `scheme://host:port` that it was sent to
   * @param duration milliseconds to the head of the answer, or to the end of the try where none came
   */
  onTried(target: string, duration: number): void
  /** The exchange is over, and the client's connection is about to know. */
  onEnd(outcome: Outcome): void
  /**
   * Nothing has been answered, and it is somebody else's to do.
   * @param thrown Refusal 502, 503, 504 or 413; ClientGone where nobody waits for an answer any more; or a fault
   */
  onRefused(thrown: unknown): void
}

/** How an exchange ended: whole, broken off by the upstream, or left by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/** Once something has been answered a failure breaks the client's connection: half an answer never looks whole. */
export function forward(forwarding: Forwarding): void {
  attempt(forwarding, forwarding.upstream.choose(), forwarding.upstream.retries)
}

/** @param retries how often it may still be sent again, where nothing of an answer has come */
function attempt(forwarding: Forwarding, target: Target, retries: number): void {
  const connection = target.connections.tryTake()
  if (connection !== undefined) send(forwarding, target, connection, retries)
  else {
    waitForOne(target.connections, forwarding.response).then(
      freed => send(forwarding, target, freed, retries),
      thrown => forwarding.observer.onRefused(thrown),
    )
  }
}

function send(forwarding: Forwarding, target: Target, connection: Connection, retries: number): void {
  // A response that has closed closes no second time: what were dispatched now would never end.
  if (forwarding.response.destroyed) {
    connection.putBack()
    forwarding.observer.onRefused(new ClientGone())
  } else dispatch(forwarding, target, connection, retries, again)
}

function again(forwarding: Forwarding, failed: Target, retries: number): void {
  attempt(forwarding, forwarding.upstream.choose(failed), retries - 1)
}

async function waitForOne(connections: Connections, response: ServerResponse): Promise<Connection> {
  let onClose = () => {}
  try {
    return await connections.take(leave => {
      onClose = leave
      response.on('close', leave)
    })
  } finally {
    response.off('close', onClose)
  }
}
