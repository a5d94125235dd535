// What comes of one request to one target: its answer, streamed on and at most once begun, another try, or a refusal.
import type { Duplex } from 'node:stream'
import { type Held, hold } from '../http/deferred-writes.ts'
import { linger } from '../http/lingering-close.ts'
import type { RequestBody } from '../http/request-body.ts'
import { observe } from '../observability/metrics/histogram.ts'
import type { TrySpan } from '../observability/tracing/tracing.ts'
import { ClientGone } from '../refusals/client-gone.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { isEventStream } from './event-streams.ts'
import { failureOf, refusalFor } from './failures.ts'
import type { Forwarding } from './forward-options.ts'
import { reasonOf, writeInterim } from './informational.ts'
import type { Outcome } from './outcome.ts'
import { answerFields, answerTrailers } from './response-headers.ts'
import { isRepeatable } from './retry-policy.ts'
import type { Try, Verdict } from './targets/attempt.ts'
import type { Sent } from './targets/connection.ts'
import type { Target } from './targets/target.ts'
import { openWebSocket } from './websocket/websocket-upgrade.ts'

/** Sends it once more, where nothing of an answer came and that may mend it. */
export type Again = (forwarding: Forwarding, failed: Target, retries: number) => void

/**
 * undici's low-level handler: its core calls these methods, and gives the raw fields in order and letter case.
 * (The newer interface is a wrapper around them that makes an object of the fields for every answer.)
 */
export class Exchange implements Sent, Held {
  readonly #forwarding: Forwarding
  readonly #target: Target
  readonly #retries: number
  readonly #again: Again
  readonly #body: RequestBody | null
  readonly #span: TrySpan | undefined
  #try: Try | undefined
  #abort: (() => void) | undefined
  #resume: (() => void) | undefined
  #forget: (() => void) | undefined
  #begun = false
  #answered = false
  #hasData = false
  /** The head waits to be sent. */
  #isHeld = false
  /** The answer's end waits with it. */
  #isWhole = false
  #isOver = false
  /** The upstream says no more. */
  #isLast = false
  /** `performance.now()`; 0 once its verdict is known. */
  #sentAt = performance.now()

  constructor(
    forwarding: Forwarding,
    target: Target,
    retries: number,
    again: Again,
    body: RequestBody | null,
    span: TrySpan | undefined,
  ) {
    this.#forwarding = forwarding
    this.#target = target
    this.#retries = retries
    this.#again = again
    this.#body = body
    this.#span = span
    this.#try = target.begin?.()
    forwarding.response.on('close', this.#onClientClose)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  onConnect(abort: () => void): void {
    this.#abort = abort
    if (this.#isOver) abort()
    else if (this.#forwarding.expectsContinue) this.#forwarding.response.writeContinue()
  }

  /** The first byte of an answer has come, whatever becomes of it. */
  onResponseStarted(): void {
    this.#begun = true
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200) {
      if (status > 101) writeInterim(this.#forwarding.request, this.#forwarding.response, status, raw)
      return true
    }
    this.#settle('answered')
    this.#span?.onStatus(status)
    const { request, response, requestId, answerRules, onEventStream } = this.#forwarding
    const mayTrail =
      request.method !== 'HEAD' && status !== 204 && status !== 304 && response.useChunkedEncodingByDefault
    const fields = answerFields(raw, requestId, answerRules, mayTrail)
    try {
      response.writeHead(status, reasonOf(status, statusText), fields)
    } catch (error) {
      // Left behind, it would spoil the refusal's head too.
      response.statusMessage = ''
      throw error
    }
    this.#answered = true
    this.#resume = resume
    if (isEventStream(fields)) this.#forget = onEventStream(() => this.#cutShort())
    this.#isHeld = true
    response.cork()
    hold(this)
    // Whole with its head (RFC 9110 §15.4.5); undici would look for the body that a 304's Content-Length speaks of.
    if (status === 304) this.onComplete(null)
    return true
  }

  /** What is not a 101 comes through `onHeaders`, and is answered as it is. */
  onUpgrade(_status: number, raw: Buffer[], socket: Duplex): void {
    const { webSocket: asked, upstream, response } = this.#forwarding
    if (this.#isOver || asked === undefined) {
      socket.destroy()
      return
    }
    try {
      openWebSocket({
        ...this.#forwarding,
        asked,
        raw,
        response,
        upstream: socket,
        idle: upstream.timeouts.idle,
      })
    } catch (error) {
      socket.destroy()
      this.#fail(error as Error)
      return
    }
    this.#settle('answered')
    this.#span?.onStatus(101)
    this.#end('open')
  }

  onData(chunk: Buffer): boolean {
    const { response } = this.#forwarding
    this.#hasData = true
    if (response.write(chunk) || this.#isLast) return true
    response.once('drain', () => this.#resume?.())
    return false
  }

  onComplete(trailers: string[] | null): void {
    if (this.#isOver) return
    const { response, answerRules } = this.#forwarding
    try {
      if (trailers !== null && trailers.length > 0) {
        response.addTrailers(answerTrailers(trailers, answerRules))
      }
    } catch (error) {
      this.#fail(error as Error)
      return
    }
    this.#end('complete')
    if (this.#isHeld) this.#isWhole = true
    else response.end()
  }

  onLastByte(): void {
    // Nothing of an answer has come: it was the end of another's, a WebSocket that was here before.
    if (this.#resume === undefined) return
    this.#isLast = true
    this.#resume()
  }

  onError(error: Error): void {
    this.#fail(error)
  }

  /** The head, with what has come of the body behind it. */
  send(): void {
    this.#isHeld = false
    const { response } = this.#forwarding
    if (this.#isWhole) response.end()
    else if (!this.#isOver) {
      // Node keeps the head for the first of the body, which may be long in coming: that of an event stream, say.
      if (!this.#hasData) response.flushHeaders()
      response.uncork()
    }
  }

  readonly #onClientClose = (): void => {
    if (this.#isOver) return
    this.#settle('left')
    this.#end(this.#answered ? 'client_gone' : new ClientGone())
    this.#abort?.()
  }

  /** Ends what would not end by itself, as if the upstream had. */
  #cutShort(): void {
    if (this.#isOver) return
    this.#end('complete')
    this.#forwarding.response.end()
    this.#abort?.()
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    const { response } = this.#forwarding
    if (this.#answered) {
      this.#end('broken')
      response.destroy()
      this.#abort?.()
      return
    }
    // undici calls `onConnect` when it has a connection to send on.
    const failure = failureOf(error, this.#abort !== undefined)
    const mayTryAgain = failure !== undefined && this.#retries > 0 && !this.#begun
    this.#settle(failure ?? 'left')
    if (error instanceof ClientGone || response.destroyed) this.#end(new ClientGone())
    else if (mayTryAgain && isRepeatable(this.#forwarding, this.#body, failure, error))
      this.#end('unanswered', error)
    else this.#end(refusalFor(error), error)
    this.#abort?.()
  }

  /** The first verdict counts. */
  #settle(verdict: Verdict): void {
    if (this.#sentAt !== 0) {
      const { upstream, observer } = this.#forwarding
      const duration = performance.now() - this.#sentAt
      if (verdict !== 'left') observe(upstream.durations, duration)
      observer.onTried(this.#target.origin, duration)
    }
    this.#sentAt = 0
    this.#try?.(verdict)
    this.#try = undefined
  }

  /** @param error that ended it, where one did */
  #end(how: Outcome | 'open' | 'unanswered' | Refusal | ClientGone, error?: Error): void {
    this.#isOver = true
    this.#span?.end(how instanceof ClientGone ? 'client_gone' : (error ?? how))
    this.#forget?.()
    const { request, response, observer } = this.#forwarding
    response.off('close', this.#onClientClose)
    this.#body?.destroy()
    if (how instanceof Error) observer.onRefused(how)
    else if (how === 'unanswered') this.#again(this.#forwarding, this.#target, this.#retries)
    else if (how !== 'open') {
      // Answered before the body's end: the rest of it stands between the client and its next request.
      if (how === 'complete') linger(request, response, false)
      observer.onEnd(how)
    }
  }
}
