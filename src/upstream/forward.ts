// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Dispatcher } from 'undici'
import { ClientGone } from '../refusals/client-gone.ts'
import { linger } from '../refusals/linger.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { RequestBody } from '../wire/request-body.ts'
import { answerFields, answerTrailers } from './answer-fields.ts'
import type { EventStreams } from './event-streams.ts'
import { refusalFor } from './failures.ts'
import type { Slots } from './slots.ts'
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
  /** Milliseconds in which the client must send or read something while it is its turn. */
  readonly bodyIdle: number
  readonly requestId: string
  readonly eventStreams: EventStreams
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
 * Resolves when the answer is complete or broken off.
 * @throws Refusal 502, 503, 504 or 413 where nothing has been answered yet; later the client's connection is
 *   broken instead, so that half an answer never looks like a whole one
 * @throws ClientGone where nothing has been answered and nobody waits for it any more
 */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { upstream, response } = forwarding
  const { slots } = upstream
  if (!slots.tryTake()) await waitForSlot(slots, response)
  try {
    // A response that has closed closes no second time: what were dispatched now would never end.
    if (response.destroyed) throw new ClientGone()
    await exchange(forwarding)
  } finally {
    slots.release()
  }
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

function exchange(forwarding: Forwarding): Promise<void> {
  return new Promise((resolve, reject) => {
    const { request, upstream, hasBody, maxBody, bodyIdle } = forwarding
    const body = hasBody ? new RequestBody(request, { maxBytes: maxBody, idle: bodyIdle }) : null
    const options = {
      origin: upstream.origin,
      method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
      path: forwarding.path,
      headers: forwarding.fields,
      body,
      headersTimeout: forwarding.responseTimeout,
    }
    upstream.pool.dispatch(options, new Exchange(forwarding, body, resolve, reject))
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
  #forget: (() => void) | undefined
  #unread: NodeJS.Timeout | undefined
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

  onConnect(abort: () => void): void {
    this.#abort = abort
    if (this.#isOver) abort()
    else if (this.#forwarding.expectsContinue) this.#forwarding.response.writeContinue()
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, statusText: string): boolean {
    // Interim answers are not the answer.
    if (status < 200) return true
    const { response, requestId, onAnswer, eventStreams } = this.#forwarding
    const fields = answerFields(raw, requestId)
    try {
      response.writeHead(status, reasonOf(status, statusText), fields)
    } catch (error) {
      // Left behind, it would spoil the refusal's head too.
      response.statusMessage = ''
      throw error
    }
    onAnswer()
    this.#answered = true
    this.#resume = () => {
      clearTimeout(this.#unread)
      resume()
    }
    response.on('drain', this.#resume)
    if (eventStreams.matches(fields)) this.#forget = eventStreams.add(() => this.#cutShort())
    // Whole with its head (RFC 9110 §15.4.5); undici would wait for the body that a 304's Content-Length speaks of.
    if (status === 304) this.onComplete(null)
    return true
  }

  onData(chunk: Buffer): boolean {
    const { response, bodyIdle } = this.#forwarding
    if (response.write(chunk)) return true
    // A client that reads nothing must not hold the upstream's connection for ever.
    clearTimeout(this.#unread)
    this.#unread = setTimeout(() => response.destroy(), bodyIdle)
    return false
  }

  onComplete(trailers: string[] | null): void {
    if (this.#isOver) return
    const { response } = this.#forwarding
    try {
      if (trailers !== null && trailers.length > 0) response.addTrailers(answerTrailers(trailers))
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
    if (this.#answered) this.#end('broken')
    else this.#end(error instanceof ClientGone || response.destroyed ? new ClientGone() : refusalFor(error))
    if (this.#answered) response.destroy()
    this.#abort?.()
  }

  #end(how: Outcome | Refusal | ClientGone): void {
    this.#isOver = true
    clearTimeout(this.#unread)
    this.#forget?.()
    const { request, response, onEnd } = this.#forwarding
    response.off('close', this.#onClientClose)
    if (this.#resume !== undefined) response.off('drain', this.#resume)
    this.#body?.destroy()
    if (how instanceof Error) {
      if (how instanceof ClientGone) onEnd('client_gone')
      this.#reject(how)
      return
    }
    // Answered before the body's end: the rest of it stands between the client and its next request.
    if (how === 'complete') linger(request, response)
    onEnd(how)
    this.#resolve()
  }
}

/** undici reads the reason as UTF-8; what is not ASCII node:http might refuse to write, so the usual one stands in. */
function reasonOf(status: number, said: string): string {
  return /^[\t -~]*$/.test(said) ? said : (STATUS_CODES[status] ?? '')
}
