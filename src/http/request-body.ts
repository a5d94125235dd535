// The request body as an endpoint or an upstream reads it: with back-pressure, a size limit and an idle limit.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'

interface BodyLimits {
  /** Past it the stream fails with `body_too_large`. */
  maxBytes: number | undefined
  /** While the body is being read, the client must send something within this time. */
  idleTimeoutMs: number
  /** For the whole body, if it is bounded: an upload may take hours, as long as bytes arrive. */
  totalTimeoutMs?: number
  /** What was read of the body before: it comes first. */
  begun?: readonly Buffer[] | undefined
}

/** A client that sends less than `slowestBytes` in each period keeps a connection busy for almost nothing. */
const slowestBytes = 1_024
const periodMs = 30_000

/**
 * A stream of its own, not the request: undici destroys the body that it was given, and with the request it would
 * destroy the client's socket before the client received a response.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #idleTimer: NodeJS.Timeout
  readonly #periodTimer: NodeJS.Timeout
  readonly #totalTimer: NodeJS.Timeout | undefined
  readonly #maxBytes: number
  #receivedBytes = 0
  /** `#receivedBytes` when the period began. */
  #bytesBefore = 0
  /** Whether the client had to wait for the reader in this period. */
  #hasClientWaited = false
  #wasRead = false

  constructor(request: IncomingMessage, { maxBytes, idleTimeoutMs, totalTimeoutMs, begun = [] }: BodyLimits) {
    super()
    this.#request = request
    this.#maxBytes = maxBytes ?? Number.POSITIVE_INFINITY
    for (const chunk of begun) {
      this.#receivedBytes += chunk.length
      this.push(chunk)
    }
    this.#idleTimer = setTimeout(() => this.#onIdle(), idleTimeoutMs)
    // A longer `body_idle` allows longer pauses.
    this.#periodTimer = setTimeout(() => this.#onPeriodEnd(), Math.max(periodMs, idleTimeoutMs))
    this.#totalTimer =
      totalTimeoutMs === undefined ? undefined : setTimeout(() => this.#failTooSlow(), totalTimeoutMs)
    request.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose)
    request.pause()
  }

  /** Whether nothing has been read: once this stream is destroyed, another can read the body from its beginning. */
  get isUnread(): boolean {
    return !this.#wasRead && !this.readableDidRead
  }

  /** Whether the client has yet to send some of it. */
  get isOwed(): boolean {
    return !this.#request.complete
  }

  override _read(): void {
    this.#wasRead = true
    this.#idleTimer.refresh()
    this.#request.resume()
  }

  /** Leaves the request to the code that answers it, neither destroyed nor paused forever. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#periodTimer)
    clearTimeout(this.#totalTimer)
    this.#request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    done(error)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > this.#maxBytes) {
      this.destroy(new Refusal('body_too_large'))
      return
    }
    this.#idleTimer.refresh()
    if (this.push(chunk)) return
    this.#hasClientWaited = true
    this.#request.pause()
  }

  readonly #onEnd = (): void => {
    this.push(null)
  }

  readonly #onClose = (): void => {
    if (!this.#request.complete) this.destroy(new ClientDisconnected())
  }

  #onIdle(): void {
    // A paused request waits for the upstream, not for the client.
    if (this.#request.isPaused()) this.#idleTimer.refresh()
    else this.#failTooSlow()
  }

  #onPeriodEnd(): void {
    const isTooSlow = this.#receivedBytes - this.#bytesBefore < slowestBytes
    if (isTooSlow && !this.#hasClientWaited && !this.#request.isPaused()) {
      this.#failTooSlow()
      return
    }
    this.#bytesBefore = this.#receivedBytes
    this.#hasClientWaited = false
    this.#periodTimer.refresh()
  }

  #failTooSlow(): void {
    this.destroy(new Refusal('request_invalid', { headers: { connection: 'close' } }))
  }
}
