// What one request to one target leads to: a response, streamed and begun at most once, a retry, or a refusal.
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
import type { Endpoint } from './targets/endpoint.ts'
import { openWebSocket } from './websocket/websocket-upgrade.ts'

/**
 * undici's low-level handler: its core calls these methods with the raw headers, in order and letter case.
 * (The newer interface wraps them and builds an object of the headers for every response.)
 */
export class ResponseRelay implements InFlight, DeferredWrite {
  readonly #options: ForwardOptions
  readonly #endpoint: Endpoint
  readonly #retry: (() => void) | undefined
  readonly #body: RequestBody | null
  readonly #span: AttemptSpan | undefined
  #endAttempt: EndAttempt | undefined
  #abort: (() => void) | undefined
  #resume: (() => void) | undefined
  #unregisterStream: (() => void) | undefined
  #deadline: NodeJS.Timeout | undefined
  #hasStarted = false
  #hasData = false
  #isHeadDeferred = false
  #isEndDeferred = false
  isOver = false
  /** The upstream has ended its side of the connection. */
  #hasUpstreamEnded = false
  /** From `performance.now()`; 0 once the result is reported. */
  #sentAtMs = performance.now()

  /** @param retry sends the request again; undefined if it may not be */
  constructor(
    options: ForwardOptions,
    endpoint: Endpoint,
    retry: (() => void) | undefined,
    body: RequestBody | null,
    span: AttemptSpan | undefined,
  ) {
    this.#options = options
    this.#endpoint = endpoint
    this.#retry = retry
    this.#body = body
    this.#span = span
    this.#endAttempt = endpoint.beginAttempt()
    options.response.on('close', this.#onClientClose)
  }

  onConnect(abort: () => void): void {
    this.#abort = abort
    if (this.isOver) abort()
    else if (this.#options.expectsContinue) this.#options.response.writeContinue()
  }

  /** The first byte of a response has come, whether or not a valid response follows. */
  onResponseStarted(): void {
    this.#hasStarted = true
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200) return this.#onInterim(status, rawHeaders)
    this.#reportResult('answered')
    this.#span?.onStatus(status)
    const { request, response, requestId, responseHeaderRules, onEventStream } = this.#options
    const canSendTrailers =
      request.method !== 'HEAD' && status !== 204 && status !== 304 && response.useChunkedEncodingByDefault
    const fields = relayHeaders(status, rawHeaders, requestId, responseHeaderRules, canSendTrailers)
    try {
      response.writeHead(status, reasonPhrase(status, statusText), fields)
    } catch (error) {
      // Left in place, it would spoil the refusal's head too.
      response.statusMessage = ''
      throw error
    }
    this.#resume = resume
    if (isEventStream(fields)) this.#unregisterStream = onEventStream(() => this.#endEarly())
    this.#isHeadDeferred = true
    response.cork()
    defer(this)
    // A 304 ends with its head (RFC 9110 §15.4.5); undici would wait for the body that its Content-Length announces.
    if (status === 304) this.onComplete(null)
    return true
  }

  #onInterim(status: number, rawHeaders: Buffer[]): true {
    const { request, response, responseTimeoutMs } = this.#options
    if (status > 101) writeInformational(request, response, status, rawHeaders)
    const sentBeforeMs = this.#body === null ? performance.now() - this.#sentAtMs : 0
    // undici would wait for as long again after each of them.
    this.#deadline ??= setTimeout(() => {
      if (this.#body?.readableEnded === false) this.#deadline?.refresh()
      else this.#fail(new errors.HeadersTimeoutError())
    }, responseTimeoutMs - sentBeforeMs)
    return true
  }

  /** Any response other than a 101 comes through `onHeaders`, and is relayed as it is. */
  onUpgrade(_status: number, rawHeaders: Buffer[], socket: Duplex): void {
    const { webSocket: handshake, upstream } = this.#options
    if (this.isOver || handshake === undefined) {
      socket.destroy()
      return
    }
    try {
      const { idle: idleTimeoutMs } = upstream.timeouts
      openWebSocket({ ...this.#options, handshake, rawHeaders, upstream: socket, idleTimeoutMs })
    } catch (error) {
      socket.destroy()
      this.#fail(error as Error)
      return
    }
    this.#reportResult('answered')
    this.#span?.onStatus(101)
    this.#end('open')
  }

  onData(chunk: Buffer): boolean {
    const { response } = this.#options
    this.#hasData = true
    if (response.write(chunk) || this.#hasUpstreamEnded) return true
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
    this.#end('complete')
    if (this.#isHeadDeferred) this.#isEndDeferred = true
    else response.end()
  }

  onUpstreamEnd(): void {
    // No response has begun: this end is that of a WebSocket that used the connection before.
    if (this.#resume === undefined) return
    this.#hasUpstreamEnded = true
    this.#resume()
  }

  onError(error: Error): void {
    this.#fail(error)
  }

  /** Sends the head, with the part of the body that has come. */
  send(): void {
    this.#isHeadDeferred = false
    const { response } = this.#options
    if (this.#isEndDeferred) response.end()
    else if (!this.isOver) {
      // Node delays the head until the body begins, which may take long: in an event stream, for example.
      if (!this.#hasData) response.flushHeaders()
      response.uncork()
    }
  }

  readonly #onClientClose = (): void => {
    if (this.isOver) return
    this.#reportResult('inconclusive')
    this.#end(this.#options.response.headersSent ? 'client_gone' : new ClientDisconnected())
    this.#abort?.()
  }

  /** Ends a response that would not end by itself, as if the upstream had. */
  #endEarly(): void {
    if (this.isOver) return
    this.#end('complete')
    this.#options.response.end()
    this.#abort?.()
  }

  #fail(error: Error): void {
    if (this.isOver) return
    const { response } = this.#options
    if (response.headersSent) {
      this.#end('broken')
      response.destroy()
      this.#abort?.()
      return
    }
    // undici calls `onConnect` when it has a connection to send on.
    const failure = failureOf(error, this.#abort !== undefined)
    const mayRetry = failure !== undefined && this.#retry !== undefined && !this.#hasStarted
    this.#reportResult(resultOf(failure, error, this.#body))
    if (error instanceof ClientDisconnected || response.destroyed) this.#end(new ClientDisconnected())
    else if (mayRetry && isRetryable(this.#options, this.#body, failure, error))
      this.#end('unanswered', error)
    else this.#end(refusalFor(error), error)
    this.#abort?.()
  }

  /** Only the first result counts. */
  #reportResult(result: AttemptResult): void {
    if (this.#sentAtMs !== 0) {
      const { upstream, observer } = this.#options
      const duration = performance.now() - this.#sentAtMs
      if (result !== 'inconclusive') observe(upstream.durations, duration)
      observer.onAttempt(this.#endpoint.name, duration)
    }
    this.#sentAtMs = 0
    clearTimeout(this.#deadline)
    this.#endAttempt?.(result)
    this.#endAttempt = undefined
  }

  #end(outcome: Outcome | 'open' | 'unanswered' | Refusal | ClientDisconnected, error?: Error): void {
    this.isOver = true
    this.#span?.end(outcome instanceof ClientDisconnected ? 'client_gone' : (error ?? outcome))
    this.#unregisterStream?.()
    const { request, response, observer } = this.#options
    response.off('close', this.#onClientClose)
    this.#body?.destroy()
    if (outcome instanceof Error) observer.onRefused(outcome)
    else if (outcome === 'unanswered') this.#retry?.()
    else if (outcome !== 'open') {
      // If the response ended before the request body, the rest of that body precedes the client's next request.
      if (outcome === 'complete') lingeringClose(request, response, false)
      observer.onEnd(outcome)
    }
  }
}
