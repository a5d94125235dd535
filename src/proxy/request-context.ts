// Contains the state of one request, from its arrival to the end of its response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Gate } from '../gate/gate.ts'
import type { GuardedRequest } from '../gate/guards/guard.ts'
import type { Question } from '../gate/parsing/question.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import { type OnRefusal, sendRefusal } from '../http/error-handlers.ts'
import { isEnding } from '../http/lingering-close.ts'
import { clientKeyOf } from '../identity/client-key.ts'
import { anonymous, type Identity } from '../identity/identity.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import type { Language } from '../refusals/catalog.ts'
import { appendHeaders } from '../refusals/limits.ts'
import type { Refusal } from '../refusals/refusal.ts'
import type { Outcome } from '../upstream/failures.ts'
import type { ForwardObserver } from '../upstream/forward-options.ts'
import { type Reservation, reserveConnection } from '../upstream/reservation.ts'
import type { Waiter } from '../upstream/targets/connection-pool.ts'
import type { LogRequest } from './access-log.ts'
import type { AnswerQuestion } from './answer-question.ts'
import type { ForwardRequest } from './forward-request.ts'
import type { LogOrigin } from './origin-log.ts'

/** The part of a snapshot that one request needs. `Snapshot` in `composition` extends this interface. */
export interface RequestSnapshot {
  readonly gate: Gate
  readonly forward: ForwardRequest
  readonly answerQuestion: AnswerQuestion
  /**
   * Resolves when the access tokens of all sessions that have already ended are refused. Without
   * `auth.logout_ends_access`, resolves immediately.
   */
  accessEnded(): Promise<void>
  /** `server.language`. */
  readonly language: Language
  /** `server.timeouts.body_idle`. */
  readonly bodyIdleMs: number
  readonly logOrigin: LogOrigin
  /** Undefined if requests are not logged. */
  readonly logRequest: LogRequest | undefined
  /** Called with every refusal, including a 500, before it is sent. */
  onRefusal(requestId: string, refusal: Refusal): void
  acquire(): void
  /** Call this once per `acquire`, when the request completes. */
  release(): void
}

/** A class without closures, because every request creates an instance. */
export class RequestContext implements GuardedRequest, ForwardObserver {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly routing: RoutingDecision
  /** The snapshot with which the request was parsed. The request keeps this snapshot until its end. */
  readonly snapshot: RequestSnapshot
  /** The request ID, as in logs and in `X-Request-Id`. */
  readonly requestId: string
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  /** Undefined if tracing is off. */
  readonly trace: RequestTrace | undefined
  /** The question of a proxy (forward auth); undefined for a request of a client. */
  readonly question: Question | undefined
  /** The request target, as the client sent it. For a question, the target of the request that the proxy asks about. */
  readonly url: string
  identity: Identity = anonymous
  /** CORS and rate-limit headers, added to the response of the upstream or the gateway. */
  headers: Readonly<Record<string, string>> | undefined
  /**
   * `forwarded`, `answered`, the error code of a refusal, or the error that a browser receives after a failed sign-in.
   * Undefined if the client disconnected before a decision.
   */
  decision: string | undefined = undefined
  reason: string | undefined = undefined
  outcome: Outcome | undefined = undefined

  /**
   * The target of the last attempt (`Endpoint.name`), and the duration of this attempt in milliseconds. The
   * duration ends when the response head arrives. Without a response head, it ends when the attempt ends.
   */
  upstreamTarget: string | undefined = undefined
  upstreamDurationMs = 0
  /** Set while the request waits for its upstream. If the client disconnects, the waiter is notified. */
  waiter: Waiter | undefined = undefined
  /** The user whom a local endpoint has just registered, signed in or signed out. */
  userId: number | undefined = undefined
  /**
   * The number of bytes written to the connection before this response, and the number written for this response. Bytes
   * are counted only if requests are logged.
   */
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
    question?: Question,
  ) {
    this.request = request
    this.response = response
    this.head = head
    this.routing = routing
    this.snapshot = snapshot
    this.requestId = requestId
    this.startedAt = startedAt
    this.trace = trace
    this.question = question
    // The URL is copied, because Fastify overwrites the `url` of the requests that it serves.
    this.url = question === undefined ? (request.url ?? '') : question.url
    this.headers = routing.cors
  }

  isGone(): boolean {
    const { request, response } = this
    return response.destroyed || (!request.complete && isEnding(request.socket))
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    this.headers = appendHeaders(this.headers, headers)
  }

  reserveConnection(): Reservation | undefined | Promise<Reservation> {
    const { routing } = this
    if (routing.kind === 'question') return undefined
    if (routing.kind !== 'route')
      throw new Error('a connection can be reserved only for a request to a route')
    const client = clientKeyOf(this.identity, this.head.client)
    return reserveConnection({ upstream: routing.route.upstream, client, waiting: this })
  }

  /**
   * @param thrown a Refusal; a ClientDisconnected, for which nothing is sent; or any other error, for which a 500 is
   *   sent
   */
  refuse(thrown: unknown): void {
    const statusOf = this.question?.isForNginx ? statusForNginx : undefined
    const note: OnRefusal = (_, refusal) => this.noteRefusal(refusal)
    sendRefusal(this.response, thrown, note, this.snapshot.language, statusOf)
  }

  /** Call this before a refusal is sent. @returns the headers that the gateway adds to the refusal */
  noteRefusal(refusal: Refusal): string[] {
    this.decision = refusal.code
    this.reason = refusal.reason
    this.snapshot.onRefusal(this.requestId, refusal)
    const headers = this.gatewayHeaders()
    if (this.question?.isForNginx) headers.push('x-peage-status', String(refusal.status))
    return headers
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

  /** Returns the headers that the gateway adds to each of its own responses, as alternating names and values. */
  gatewayHeaders(): string[] {
    const all = ['x-request-id', this.requestId]
    for (const name in this.headers) all.push(name, this.headers[name] as string)
    return all
  }
}

/**
 * In the response to an auth request, nginx accepts only these error statuses. It turns every other error into a 500.
 */
function statusForNginx(status: number): number {
  return status === 401 ? 401 : 403
}
