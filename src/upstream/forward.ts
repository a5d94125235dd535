// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ClientGone } from '../refusals/client-gone.ts'
import type { AnswerRules } from './answer-fields.ts'
import { exchange } from './exchange.ts'
import type { Slots } from './slots.ts'
import type { Target } from './target.ts'
import type { Upstream } from './upstreams.ts'
import type { WebSocketAsked } from './web-socket.ts'

export interface Forwarding {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** Path and query as the upstream is sent them. */
  readonly path: string
  /** Names and values in turn; Host's comes first, and is that of the target in the end. */
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
  /** Called as the head is written: from then on nobody else may answer. */
  onAnswer(): void
  /** Called when the exchange is over, before the client's connection knows: the log is written then. */
  onEnd(outcome: Outcome): void
}

/** How an exchange ended: whole, broken off by the upstream, or left by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/**
 * Resolves when the answer is complete or broken off.
 * @throws Refusal 502, 503, 504 or 413 where nothing has been answered yet; later the client's connection is
 *   broken instead, so that half an answer never looks like a whole one
 * @throws ClientGone where nothing has been answered and nobody waits for it any more
 */
export function forward(forwarding: Forwarding): Promise<void> {
  const { upstream } = forwarding
  return send(forwarding, upstream.choose(), upstream.retries)
}

/** @param retries how often it may still be sent again, where nothing of an answer has come */
async function send(forwarding: Forwarding, target: Target, retries: number): Promise<void> {
  const { upstream, response } = forwarding
  const { slots } = target
  if (!slots.tryTake()) await waitForSlot(slots, response)
  let isUnanswered: boolean
  try {
    // A response that has closed closes no second time: what were dispatched now would never end.
    if (response.destroyed) throw new ClientGone()
    isUnanswered = await exchange(forwarding, target, retries > 0)
  } finally {
    slots.release()
  }
  if (isUnanswered) await send(forwarding, upstream.choose(target), retries - 1)
}

async function waitForSlot(slots: Slots, response: ServerResponse): Promise<void> {
  let onClose = () => {}
  try {
    await slots.take(leave => {
      onClose = leave
      response.on('close', leave)
    })
  } finally {
    response.off('close', onClose)
  }
}
