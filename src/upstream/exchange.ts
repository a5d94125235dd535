// One request to one target, and its answer: streamed both ways, at most once begun to be answered.
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { ClientGone } from '../refusals/client-gone.ts'
import { linger } from '../refusals/linger.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { RequestBody } from '../wire/request-body.ts'
import { answerFields, answerTrailers } from './answer-fields.ts'
import { isEventStream } from './event-streams.ts'
import { type Failure, failureOf, isTimeout, refusalFor } from './failures.ts'
import type { Forwarding, Outcome } from './forward.ts'
import { reasonOf, writeInterim } from './interim.ts'
import { isIdempotent } from './methods.ts'
import type { Target, Try, Verdict } from './target.ts'
import { openWebSocket } from './web-socket.ts'

/**
 * @param mayRepeat another try may follow
 * @returns true where nothing of an answer came and another try may mend it; else the answer is complete or broken off
 * @throws Refusal, ClientGone as `forward` does
 */
export function exchange(forwarding: Forwarding, target: Target, mayRepeat: boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const { request, fields, hasBody, maxBody, bodyIdle } = forwarding
    const body = hasBody ? new RequestBody(request, { maxBytes: maxBody, idle: bodyIdle }) : null
    fields[1] = forwarding.host ?? target.host
    const options = {
      origin: target.origin,
      method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
      path: forwarding.path,
      headers: fields,
      body,
      headersTimeout: forwarding.responseTimeout,
      upgrade: forwarding.webSocket === undefined ? null : 'websocket',
      // Else undici would take the Host field for it, whatever a route sets there.
      servername: target.serverName,
    }
    target.pool.dispatch(options, new Exchange(forwarding, target, mayRepeat, body, resolve, reject))
  })
}

/**
 * undici's low-level handler: its core calls these methods, and gives the raw fields in order and letter case.
 * (The newer interface is a wrapper around them that makes an object of the fields for every answer.)
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #forwarding: Forwarding
  readonly #mayRepeat: boolean
  readonly #body: RequestBody | null
  readonly #resolve: (isUnanswered: boolean) => void
  readonly #reject: (reason: unknown) => void
  #try: Try | undefined
  #abort: (() => void) | undefined
  #resume: (() => void) | undefined
  #forget: (() => void) | undefined
  #unread: NodeJS.Timeout | undefined
  #begun = false
  #answered = false
  #isOver = false

  constructor(
    forwarding: Forwarding,
    target: Target,
    mayRepeat: boolean,
    body: RequestBody | null,
    resolve: (isUnanswered: boolean) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#forwarding = forwarding
    this.#mayRepeat = mayRepeat
    this.#body = body
    this.#resolve = resolve
    this.#reject = reject
    this.#try = target.begin?.()
    forwarding.response.on('close', this.#onClientClose)
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
    const { response, requestId, answerRules, onAnswer, onEventStream } = this.#forwarding
    const fields = answerFields(raw, requestId, answerRules)
    try {
      response.writeHead(status, reasonOf(status, statusText), fields)
    } catch (error) {
      // Left behind, it would spoil the refusal's head too.
      response.statusMessage = ''
      throw error
    }
    onAnswer()
    this.#answered = true
    this.#resume = resume
    if (isEventStream(fields)) this.#forget = onEventStream(() => this.#cutShort())
    // Whole with its head (RFC 9110 §15.4.5); undici would wait for the body that a 304's Content-Length speaks of.
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
    this.#end('open')
  }

  onData(chunk: Buffer): boolean {
    const { response, bodyIdle } = this.#forwarding
    if (response.write(chunk)) return true
    if (this.#unread === undefined) response.once('drain', this.#onDrain)
    // A client that reads nothing must not hold the upstream's connection for ever.
    clearTimeout(this.#unread)
    this.#unread = setTimeout(() => response.destroy(), bodyIdle)
    return false
  }

  // A field, as the other listener is: a function that is assigned to a property anywhere else is made in V8's old
  // space, and keeps what it holds, here the whole exchange, until the next full collection.
  readonly #onDrain = (): void => {
    clearTimeout(this.#unread)
    this.#unread = undefined
    this.#resume?.()
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
    response.end()
  }

  onError(error: Error): void {
    this.#fail(error)
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
    this.#settle(failure ?? 'left')
    if (error instanceof ClientGone || response.destroyed) this.#end(new ClientGone())
    else if (failure !== undefined && this.#isRepeatable(error, failure)) this.#end('unanswered')
    else this.#end(refusalFor(error))
    this.#abort?.()
  }

  /** The first verdict counts. */
  #settle(verdict: Verdict): void {
    this.#try?.(verdict)
    this.#try = undefined
  }

  /** Nothing was answered, sending it twice does no harm, and another try may fare better (CONTRACT §2, `retries`). */
  #isRepeatable(error: Error, failure: Failure): boolean {
    const { request, upstream } = this.#forwarding
    if (!this.#mayRepeat || this.#begun || !isIdempotent(request.method ?? '')) return false
    if (this.#body !== null && !this.#body.isUntouched) return false
    // Who waited so long for nothing is told so; who could not be connected to has to have another to go to.
    return failure === 'unreachable' ? upstream.targets.length > 1 : !isTimeout(error)
  }

  #end(how: Outcome | 'open' | 'unanswered' | Refusal | ClientGone): void {
    this.#isOver = true
    clearTimeout(this.#unread)
    this.#forget?.()
    const { request, response, onEnd } = this.#forwarding
    response.off('close', this.#onClientClose)
    if (this.#unread !== undefined) response.off('drain', this.#onDrain)
    this.#body?.destroy()
    if (how instanceof Error) {
      if (how instanceof ClientGone) onEnd('client_gone')
      this.#reject(how)
      return
    }
    if (how === 'unanswered') {
      this.#resolve(true)
      return
    }
    if (how === 'open') {
      this.#resolve(false)
      return
    }
    // Answered before the body's end: the rest of it stands between the client and its next request.
    if (how === 'complete') linger(request, response)
    onEnd(how)
    this.#resolve(false)
  }
}
