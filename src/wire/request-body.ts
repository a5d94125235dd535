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
}

/**
 * Not the request itself: undici destroys what it was given to read, and with it would go the client's socket
 * before the client heard why.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #idle: NodeJS.Timeout
  readonly #maxBytes: number
  #received = 0

  constructor(request: IncomingMessage, { maxBytes, idle }: Limits) {
    super()
    this.#request = request
    this.#maxBytes = maxBytes ?? Number.POSITIVE_INFINITY
    this.#idle = setTimeout(() => this.#onIdle(), idle)
    request.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose)
    request.pause()
  }

  override _read(): void {
    this.#idle.refresh()
    this.#request.resume()
  }

  /** Leaves the request to whoever answers it: it is neither paused for ever nor destroyed. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle)
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
    else this.destroy(new Refusal('request_invalid', { headers: { connection: 'close' } }))
  }
}
