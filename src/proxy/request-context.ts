// What the gateway knows of one request: handed on from the socket to the answer, and filled in on the way.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { GuardedRequest } from '../gate/guards/guard.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import { sendRefusal } from '../http/error-handlers.ts'
import { anonymous, type Identity } from '../identity/identity.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import type { Refusal } from '../refusals/refusal.ts'
import type { ForwardObserver, Outcome } from '../upstream/outcome.ts'
import type { RequestSnapshot } from './request-snapshot.ts'

/** An object of one class and no closures: one is made for every request. */
export class RequestContext implements GuardedRequest, ForwardObserver {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly routing: RoutingDecision
  /** What it was parsed under, and is served by to its end. */
  readonly snapshot: RequestSnapshot
  /** As logs and `X-Request-Id` have it. */
  readonly requestId: string
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  /** Its spans; nothing where there are no traces. */
  readonly trace: RequestTrace | undefined
  /** The request target, as the client sent it. */
  readonly url: string
  identity: Identity = anonymous
  /** What the answer carries whoever gives it; nothing where there is nothing of the kind. */
  headers: Readonly<Record<string, string>> | undefined
  /** `forwarded`, `answered`, or the code of the refusal; nothing where the client left before one was taken. */
  decision: string | undefined = undefined
  /** How a forwarded exchange ended. */
  outcome: Outcome | undefined = undefined

  /** The last target that it was sent to, `scheme://host:port`, and milliseconds to the head of its answer or the end of the try. */
  upstreamTarget: string | undefined = undefined
  upstreamDurationMs = 0
  /** Whom an endpoint of our own has just signed up, in or out. */
  userId: number | undefined = undefined
  /** What the connection had been handed when the request's turn began, and since then; where requests are logged. */
  bytesBefore = 0
  bytesSent = 0

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    head: RequestHead,
    routing: RoutingDecision,
    snapshot: RequestSnapshot,
    requestId: string,
    startedAt: number,
    trace?: RequestTrace,
  ) {
    this.request = request
    this.response = response
    this.head = head
    this.routing = routing
    this.snapshot = snapshot
    this.requestId = requestId
    this.startedAt = startedAt
    this.trace = trace
    // Fastify writes another into the request that it serves.
    this.url = request.url ?? ''
    this.headers = routing.cors
  }

  isGone(): boolean {
    return this.response.destroyed
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    this.headers = { ...this.headers, ...headers }
  }

  /** Answers with a refusal. @param thrown a Refusal; ClientGone, which nobody is told; or a fault, which is 500 */
  refuse(thrown: unknown): void {
    sendRefusal(this.response, thrown, (_, refusal) => this.noteRefusal(refusal))
  }

  /** To be called before a refusal is answered. @returns the headers that its answer carries beside its own */
  noteRefusal(refusal: Refusal): string[] {
    this.decision = refusal.code
    this.snapshot.onRefusal(this.requestId, refusal)
    return this.gatewayHeaders()
  }

  onRefused(thrown: unknown): void {
    this.refuse(thrown)
  }

  onAttempt(target: string, durationMs: number): void {
    this.upstreamTarget = target
    this.upstreamDurationMs = durationMs
  }

  onEnd(outcome: Outcome): void {
    this.outcome = outcome
  }

  /** What every answer of the gateway's own carries, names and values in turn. */
  gatewayHeaders(): string[] {
    const all = ['x-request-id', this.requestId]
    for (const name in this.headers) all.push(name, this.headers[name] as string)
    return all
  }
}
