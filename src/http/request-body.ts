// Provides the request body to an endpoint or an upstream, with back-pressure, a size limit and an idle limit.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'

interface BodyLimits {
  /** If the body is larger, the stream fails with `body_too_large`. */
  maxBytes: number | undefined
  /** While the body is being read, the client must send something within this time. */
  idleTimeoutMs: number
  /** The time limit for the whole body. Without it, an upload can take any time, as long as bytes keep arriving. */
  totalTimeoutMs?: number
  /** The part of the body that was already read. The stream begins with this part. */
  begun?: readonly Buffer[] | undefined
}

/** The minimum number of bytes per period. A client that sends fewer bytes must not keep a connection busy. */
const slowestBytes = 1_024
const periodMs = 30_000

/**
 * Copies the request body to a separate stream, because undici destroys the stream that it receives. If undici received
 * the request itself, the client's socket would close before the client received a response.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage
  readonly #idleTimer: NodeJS.Timeout
  readonly #periodTimer: NodeJS.Timeout
  readonly #totalTimer: NodeJS.Timeout | undefined
  readonly #maxBytes: number
  #receivedBytes = 0
  /** `#receivedBytes` at the beginning of the period. */
  #bytesBefore = 0
  /** Whether the client had to wait for the reader of this stream in this period. */
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
    // With a `body_idle` above 30 s, the client may pause longer, so the period is as long as `body_idle`.
    this.#periodTimer = setTimeout(() => this.#onPeriodEnd(), Math.max(periodMs, idleTimeoutMs))
    this.#totalTimer =
      totalTimeoutMs === undefined ? undefined : setTimeout(() => this.#failTooSlow(), totalTimeoutMs)
    request.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose)
    request.pause()
  }

  /**
   * Whether nothing has been read from this stream. If so, another stream can read the body after this stream is
   * destroyed.
   */
  get isUnread(): boolean {
    return !this.#wasRead && !this.readableDidRead
  }

  /** Returns whether the client still has to send a part of the body. */
  get isOwed(): boolean {
    return !this.#request.complete
  }

  override _read(): void {
    this.#wasRead = true
    this.#idleTimer.refresh()
    this.#request.resume()
  }

  /**
   * Stops the timers and listeners. Does not destroy the request, because the code that sends the response still needs
   * the request.
   */
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
    // A paused request waits for the upstream, not for the client, so the idle time begins again.
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
