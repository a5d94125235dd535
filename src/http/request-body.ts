// A client's body as it is read here, by an endpoint or an upstream: back-pressure, a size limit, an idle limit.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'

interface Limits {
  /** Bytes; past it the stream fails with `body_too_large`. */
  maxBytes: number | undefined
  /** Milliseconds in which the client must send something while it is read. */
  idle: number
  /** Milliseconds for all of it, where it is bounded: an upload may take hours, as long as it moves. */
  total?: number
}

/**
 * Not the request itself: undici destroys what it was given to read, and with it would go the client's socket
 * before the client heard why.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #idle: NodeJS.Timeout
  readonly #total: NodeJS.Timeout | undefined
  readonly #maxBytes: number
  #received = 0
  #isTouched = false

  constructor(request: IncomingMessage, { maxBytes, idle, total }: Limits) {
    super()
    this.#request = request
    this.#maxBytes = maxBytes ?? Number.POSITIVE_INFINITY
    this.#idle = setTimeout(() => this.#onIdle(), idle)
    this.#total = total === undefined ? undefined : setTimeout(() => this.#tooSlow(), total)
    request.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose)
    request.pause()
  }

  /** Nothing of it was asked for: another may read it from its beginning once this one is destroyed. */
  get isUntouched(): boolean {
    return !this.#isTouched
  }

  override _read(): void {
    this.#isTouched = true
    this.#idle.refresh()
    this.#request.resume()
  }

  /** Leaves the request to whoever answers it: it is neither paused for ever nor destroyed. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle)
    clearTimeout(this.#total)
    this.#request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    done(error)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#received += chunk.length
    if (this.#received > this.#maxBytes) {
      this.destroy(new Refusal('body_too_large'))
      return
    }
    this.#idle.refresh()
    if (!this.push(chunk)) this.#request.pause()
  }

  readonly #onEnd = (): void => {
    this.push(null)
  }

  readonly #onClose = (): void => {
    if (!this.#request.complete) this.destroy(new ClientGone())
  }

  #onIdle(): void {
    // A paused request waits for the upstream, not for the client.
    if (this.#request.isPaused()) this.#idle.refresh()
    else this.#tooSlow()
  }

  #tooSlow(): void {
    this.destroy(new Refusal('request_invalid', { headers: { connection: 'close' } }))
  }
}
