// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { drain } from '../refusals/linger.ts'
import { Refusal } from '../refusals/refusal.ts'
import { ClientGone, RequestBody } from '../wire/request-body.ts'
import { answerFields, answerTrailers } from './answer-fields.ts'
import { refusalFor } from './failures.ts'
import type { Upstream } from './upstreams.ts'

export interface Forwarding {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** Path and query as the upstream is sent them. */
  readonly path: string
  /** Names and values in turn. */
  readonly fields: string[]
  readonly hasBody: boolean
  /** Milliseconds to the answer's head. */
  readonly responseTimeout: number
  /** Bytes of the request's body, `undefined` for no limit. */
  readonly maxBody: number | undefined
  /** Milliseconds between two chunks of the client's body. */
  readonly bodyIdle: number
  readonly requestId: string
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Called as the head is written: from then on nobody else may answer. */
  onAnswer(): void
  /** Called when the exchange is over, before the client's connection knows: the log is written then. */
  onEnd(outcome: Outcome): void
}

/** How an exchange ended: whole, broken off by the upstream, or left by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/**
 * Resolves when the answer is complete or broken off, and when the client has gone.
 * @throws Refusal 502, 503, 504 or 413 where nothing has been answered yet; later the client's connection is
 *   broken instead, so that half an answer never looks like a whole one
 */
export function forward(forwarding: Forwarding): Promise<void> {
  return new Promise((resolve, reject) => {
    const { request, upstream, hasBody, maxBody, bodyIdle } = forwarding
    const body = hasBody ? new RequestBody(request, { maxBytes: maxBody, idle: bodyIdle }) : null
    const exchange = new Exchange(forwarding, body, resolve, reject)
    const options = {
      origin: upstream.origin,
      method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
      path: forwarding.path,
      headers: forwarding.fields,
      body,
      headersTimeout: forwarding.responseTimeout,
    }
    upstream.pool.dispatch(options, exchange)
    exchange.awaitConnection()
  })
}

/**
 * undici's low-level handler: its core calls these methods, and gives the raw fields in order and letter case.
 * (The newer interface is a wrapper around them that makes an object of the fields for every answer.)
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #forwarding: Forwarding
  readonly #body: RequestBody | null
  readonly #resolve: () => void
  readonly #reject: (reason: unknown) => void
  #abort: (() => void) | undefined
  #resume: (() => void) | undefined
  #waiting: NodeJS.Timeout | undefined
  #answered = false
  #isOver = false

  constructor(
    forwarding: Forwarding,
    body: RequestBody | null,
    resolve: () => void,
    reject: (reason: unknown) => void,
  ) {
    this.#forwarding = forwarding
    this.#body = body
    this.#resolve = resolve
    this.#reject = reject
    forwarding.response.on('close', this.#onClientClose)
  }

  /** All connections are busy or none is open yet: the wait is bounded (CONTRACT §2, `connections`). */
  awaitConnection(): void {
    if (this.#isOver || this.#abort !== undefined) return
    // undici's own limit for the connection comes first: that is 502, this is 503.
    const limit = this.#forwarding.upstream.timeouts.connect + 100
    this.#waiting = setTimeout(() => this.#fail(new Refusal('upstream_unavailable')), limit)
  }

  onConnect(abort: () => void): void {
    clearTimeout(this.#waiting)
    this.#abort = abort
    if (this.#isOver) abort()
    else if (this.#forwarding.expectsContinue) this.#forwarding.response.writeContinue()
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, statusText: string): boolean {
    // Interim answers are not the answer.
    if (status < 200) return true
    const { response, requestId } = this.#forwarding
    response.writeHead(status, statusText, answerFields(raw, requestId))
    this.#forwarding.onAnswer()
    this.#answered = true
    this.#resume = resume
    response.on('drain', resume)
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#forwarding.response.write(chunk)
  }

  onComplete(trailers: string[] | null): void {
    const { response } = this.#forwarding
    if (trailers !== null && trailers.length > 0) response.addTrailers(answerTrailers(trailers))
    this.#end('complete')
    response.end()
  }

  onError(error: Error): void {
    this.#fail(error)
  }

  readonly #onClientClose = (): void => {
    if (this.#isOver) return
    this.#end('client_gone')
    this.#abort?.()
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    const { response } = this.#forwarding
    if (this.#answered) this.#end('broken')
    else if (error instanceof ClientGone || response.destroyed) this.#end('client_gone')
    else this.#end(refusalFor(error))
    if (this.#answered) response.destroy()
    this.#abort?.()
  }

  #end(how: Outcome | Refusal): void {
    this.#isOver = true
    clearTimeout(this.#waiting)
    const { response } = this.#forwarding
    response.off('close', this.#onClientClose)
    if (this.#resume !== undefined) response.off('drain', this.#resume)
    this.#body?.destroy()
    if (how instanceof Refusal) this.#reject(how)
    else {
      // Answered before the body's end: the rest of it stands between the client and its next request.
      if (how === 'complete') drain(this.#forwarding.request)
      this.#forwarding.onEnd(how)
      this.#resolve()
    }
  }
}
