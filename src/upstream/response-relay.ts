// Relays the response of one attempt to the client, refuses the request, or reports that it may be sent again.
// The relay is in one of these states. Each state can become `over`. The arrow shows the other next states.
//
//   connecting    undici has no connection for the request yet. → sent
//   sent          The request is on a connection, and no byte of a response has arrived. → answered
//   answered      A response has begun, so the request is not sent again. → head_corked
//   head_corked   The head is corked until this event-loop poll ends. → body_corked, whole_corked, streaming
//   body_corked   The head and a part of the body are corked. → whole_corked, streaming
//   whole_corked  The whole response is corked, and the upstream is no longer involved.
//   streaming     The head was sent, and the body is relayed as it arrives.
//   over          The relay relays nothing more. It is also over when a WebSocket tunnel has opened.
import type { Duplex } from 'node:stream'
import { errors } from 'undici'
import { type DeferredWrite, defer } from '../http/deferred-writes.ts'
import { lingeringClose } from '../http/lingering-close.ts'
import type { RequestBody } from '../http/request-body.ts'
import { observe } from '../observability/metrics/histogram.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import { ClientDisconnected, type Refusal } from '../refusals/refusal.ts'
import {
  type AttemptResult,
  type EndAttempt,
  failureOf,
  isRetryable,
  type Outcome,
  refusalFor,
  resultOf,
} from './failures.ts'
import type { ForwardOptions } from './forward-options.ts'
import {
  isEventStream,
  reasonPhrase,
  relayHeaders,
  relayTrailers,
  writeInformational,
} from './response-head.ts'
import type { InFlight } from './targets/connection.ts'
import type { Waiter } from './targets/connection-pool.ts'
import type { Endpoint } from './targets/endpoint.ts'
import type { Tunnel } from './websocket/tunnel.ts'
import { openWebSocket } from './websocket/websocket-upgrade.ts'

type RelayState =
  | 'connecting'
  | 'sent'
  | 'answered'
  | 'head_corked'
  | 'body_corked'
  | 'whole_corked'
  | 'streaming'
  | 'over'

/** `unanswered`: another attempt is possible. `reported`: the observer was notified, or a WebSocket tunnel is open. */
export type RelayEnd = 'unanswered' | 'reported'

interface Attempt {
  readonly options: ForwardOptions
  readonly endpoint: Endpoint
  /** The streamed body; null if the request has no body, or if its whole body was read in advance. */
  readonly body: RequestBody | null
  /** Whether the client still waits for `100 Continue`. */
  readonly sendsContinue: boolean
  /** Whether `retries` allows another attempt. */
  readonly mayRetry: boolean
  readonly span: AttemptSpan | undefined
  onOver(end: RelayEnd): void
}

/**
 * Implements undici's low-level handler interface, which passes the raw headers in their original order and letter
 * case. The newer handler interface would build an object of headers for every response.
 */
export class ResponseRelay implements InFlight, DeferredWrite, Waiter {
  readonly #attempt: Attempt
  readonly #options: ForwardOptions
  #state: RelayState = 'connecting'
  #endAttempt: EndAttempt | undefined
  #abort: (() => void) | undefined
  /** Undefined if the response must not be paused: before its head, and after the upstream has ended its side. */
  #resume: (() => void) | undefined
  #unregisterStream: (() => void) | undefined
  #deadline: NodeJS.Timeout | undefined
  /** When the request was sent, from `performance.now()`; 0 after the result was reported. */
  #sentAtMs = performance.now()

  constructor(attempt: Attempt) {
    this.#attempt = attempt
    this.#options = attempt.options
    this.#endAttempt = attempt.endpoint.beginAttempt()
    this.#options.observer.waiter = this
  }

  /** Returns whether the upstream is no longer involved in the exchange. */
  get isOver(): boolean {
    return this.#state === 'over' || this.#state === 'whole_corked'
  }

  onConnect(abort: () => void): void {
    this.#abort = abort
    if (this.isOver) {
      abort()
      return
    }
    this.#state = 'sent'
    if (this.#attempt.sendsContinue) this.#options.response.writeContinue()
  }

  /** Called when the first byte of a response has arrived. The response may still be invalid. */
  onResponseStarted(): void {
    if (this.#state === 'sent') this.#state = 'answered'
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200) return this.#onInterim(status, rawHeaders)
    this.#reportResult('answered')
    this.#attempt.span?.onStatus(status)
    const { request, response, requestId, responseHeaderRules, onEventStream } = this.#options
    const canSendTrailers =
      request.method !== 'HEAD' && status !== 204 && status !== 304 && request.httpVersion === '1.1'
    const fields = relayHeaders(status, rawHeaders, requestId, responseHeaderRules, canSendTrailers)
    try {
      response.writeHead(status, reasonPhrase(status, statusText), fields)
    } catch (error) {
      // Node keeps the invalid reason phrase of the upstream. Without this reset, sending the refusal would fail too.
      response.statusMessage = ''
      throw error
    }
    this.#resume = resume
    if (isEventStream(fields)) this.#unregisterStream = onEventStream(() => this.#endEarly())
    this.#state = 'head_corked'
    response.cork()
    defer(this)
    // A 304 ends with its head (RFC 9110 §15.4.5). If the 304 has a Content-Length, undici would wait for a body.
    if (status === 304) this.onComplete(null)
    return true
  }

  #onInterim(status: number, rawHeaders: Buffer[]): true {
    const { request, response, responseTimeoutMs } = this.#options
    const { body } = this.#attempt
    if (status > 101) writeInformational(request, response, status, rawHeaders)
    const sentBeforeMs = body === null ? performance.now() - this.#sentAtMs : 0
    // One deadline covers all informational responses. undici would restart its own timeout after each of them.
    this.#deadline ??= setTimeout(() => {
      if (body?.readableEnded === false) this.#deadline?.refresh()
      else this.#fail(new errors.HeadersTimeoutError())
    }, responseTimeoutMs - sentBeforeMs)
    return true
  }

  /** Called only for a 101. Every other response comes through `onHeaders` and is relayed unchanged. */
  onUpgrade(_status: number, rawHeaders: Buffer[], socket: Duplex): void {
    const { webSocket: handshake, upstream, observer } = this.#options
    if (this.isOver || handshake === undefined) {
      socket.destroy()
      return
    }
    const { idle: idleTimeoutMs } = upstream.timeouts
    let tunnel: Tunnel
    try {
      tunnel = openWebSocket({ ...this.#options, handshake, rawHeaders, upstream: socket, idleTimeoutMs })
    } catch (error) {
      socket.destroy()
      this.#fail(error as Error)
      return
    }
    this.#reportResult('answered')
    this.#attempt.span?.onStatus(101)
    this.#leave('open')
    observer.waiter = tunnel
    this.#attempt.onOver('reported')
  }

  onData(chunk: Buffer): boolean {
    const { response } = this.#options
    if (this.#state === 'head_corked') this.#state = 'body_corked'
    if (response.write(chunk) || this.#resume === undefined) return true
    response.once('drain', () => this.#resume?.())
    return false
  }

  onComplete(trailers: string[] | null): void {
    if (this.isOver) return
    const { response, responseHeaderRules } = this.#options
    try {
      if (trailers?.length) response.addTrailers(relayTrailers(trailers, responseHeaderRules))
    } catch (error) {
      this.#fail(error as Error)
      return
    }
    const isStreaming = this.#state === 'streaming'
    this.#end('complete', undefined, isStreaming ? 'over' : 'whole_corked')
    if (isStreaming) response.end()
  }

  onUpstreamEnd(): void {
    // Before the response head, `#resume` is undefined. The event then comes from an earlier WebSocket.
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  onError(error: Error): void {
    this.#fail(error)
  }

  send(): void {
    const { response } = this.#options
    const corked = this.#state
    if (corked === 'whole_corked') {
      this.#state = 'over'
      response.end()
    } else if (corked === 'head_corked' || corked === 'body_corked') {
      this.#state = 'streaming'
      // Node delays the head until the body begins. That may take long, for example in an event stream.
      if (corked === 'head_corked') response.flushHeaders()
      response.uncork()
    }
  }

  onClientGone(): void {
    this.#reportResult('inconclusive')
    this.#end(this.#options.response.headersSent ? 'client_gone' : new ClientDisconnected())
    this.#abort?.()
  }

  /** Ends an endless response, as if the upstream had ended it. */
  #endEarly(): void {
    if (this.isOver) return
    this.#end('complete')
    this.#options.response.end()
    this.#abort?.()
  }

  #fail(error: Error): void {
    if (this.isOver) return
    const { response } = this.#options
    const { body, mayRetry } = this.#attempt
    if (response.headersSent) {
      this.#end('broken')
      response.destroy()
      this.#abort?.()
      return
    }
    const failure = failureOf(error, this.#state !== 'connecting')
    this.#reportResult(resultOf(failure, error, body))
    if (error instanceof ClientDisconnected || response.destroyed) this.#end(new ClientDisconnected())
    else if (
      mayRetry &&
      failure !== undefined &&
      this.#state !== 'answered' &&
      isRetryable(this.#options, body, failure, error)
    ) {
      this.#leave(error)
      this.#attempt.onOver('unanswered')
    } else this.#end(refusalFor(error), error)
    this.#abort?.()
  }

  /** Reports the result of the attempt. Only the first call has an effect. */
  #reportResult(result: AttemptResult): void {
    if (this.#sentAtMs !== 0) {
      const { upstream, observer } = this.#options
      const duration = performance.now() - this.#sentAtMs
      if (result !== 'inconclusive') observe(upstream.durations, duration)
      observer.onAttempt(this.#attempt.endpoint.name, duration)
    }
    this.#sentAtMs = 0
    clearTimeout(this.#deadline)
    this.#endAttempt?.(result)
    this.#endAttempt = undefined
  }

  /** Reports the end of the exchange. @param error the reason for the end, if `outcome` is not the reason */
  #end(
    outcome: Outcome | Refusal | ClientDisconnected,
    error?: Error,
    next: 'over' | 'whole_corked' = 'over',
  ): void {
    const { request, response, observer } = this.#options
    this.#leave(outcome instanceof ClientDisconnected ? 'client_gone' : (error ?? outcome), next)
    if (outcome instanceof Error) observer.onRefused(outcome)
    else {
      // If the response ends before the request body, the rest of the body must be read before the next request.
      if (outcome === 'complete') lingeringClose(request, response, false)
      observer.onEnd(outcome)
    }
    this.#attempt.onOver('reported')
  }

  /** Releases the resources of the relay. @param result the result that the span of this attempt records */
  #leave(result: string | Error, next: 'over' | 'whole_corked' = 'over'): void {
    this.#state = next
    this.#options.observer.waiter = undefined
    this.#attempt.span?.end(result)
    this.#unregisterStream?.()
    this.#attempt.body?.destroy()
  }
}
