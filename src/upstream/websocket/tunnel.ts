// Relays the bytes of a WebSocket in both directions with back-pressure. Inserts a Close frame only between frames.
import type { Duplex } from 'node:stream'
import { closeFrame, FrameTracker } from '../../http/websocket-frames.ts'
import type { Outcome } from '../failures.ts'

/** The codes for "going away" and "policy violation" (RFC 6455 §7.4.1). */
type CloseCode = 1001 | 1008

export interface Tunnel {
  /**
   * Sends a Close frame to each side when the frame that is being sent to this side is complete. Ends both connections
   * shortly after.
   */
  close(code: CloseCode): void
  /** Call when the client's connection has closed. */
  onClientGone(): void
}

interface Options {
  client: Duplex
  upstream: Duplex
  /** The tunnel closes after this time without a byte in either direction. */
  idleTimeoutMs: number
  /** Called by `onClientGone`. */
  onEnd(outcome: Outcome): void
}

/** Maximum time for the current frame to end. A Close frame can only follow a complete frame. */
const frameTimeoutMs = 300

/** Maximum time for both sides to reply to the Close frame. */
const closeTimeoutMs = 500

/**
 * Opens a tunnel. There may be thousands of idle WebSockets. To save memory, all tunnels share the same listener
 * functions.
 */
export function openTunnel(options: Options): Tunnel {
  return new OpenTunnel(options)
}

class OpenTunnel implements Tunnel {
  readonly client: TunnelSocket
  readonly upstream: TunnelSocket
  readonly #idleTimeoutMs: number
  readonly #onEnd: (outcome: Outcome) => void
  readonly #toClient: Direction
  readonly #toUpstream: Direction
  lastByteAtMs = performance.now()
  #failure: Outcome | undefined
  #isClosing = false
  #idle: NodeJS.Timeout | undefined
  /** The timers that end the tunnel if closing takes too long; undefined while the tunnel is open. */
  #timers: NodeJS.Timeout[] | undefined

  constructor({ client, upstream, idleTimeoutMs, onEnd }: Options) {
    this.client = client
    this.upstream = upstream
    this.#idleTimeoutMs = idleTimeoutMs
    this.#onEnd = onEnd
    this.#toClient = new Direction(this, upstream, client)
    this.#toUpstream = new Direction(this, client, upstream)
    this.#checkIdle()
    upstream.on('error', destroySocket).once('close', onUpstreamClose)
    client.on('error', destroySocket)
  }

  close(code: CloseCode): void {
    if (this.#isClosing) return
    this.#isClosing = true
    // The upstream gets a Close frame only after its last frame for the client is complete. An upstream that received
    // the Close frame earlier might not complete its last frame.
    this.#toClient.closeWith(closeFrame(code, false), () =>
      this.#toUpstream.closeWith(closeFrame(1001, true), () => {}),
    )
    this.#after(frameTimeoutMs, () => {
      if (!this.#toClient.isOver) this.client.destroy()
    })
    this.#after(frameTimeoutMs + closeTimeoutMs, () => {
      this.client.destroy()
      this.upstream.destroy()
    })
  }

  onUpstreamClosed(): void {
    if (!this.#toClient.isOver) this.#failure ??= 'broken'
    this.#onPeerClosed(this.client, this.#toClient, this.#toUpstream)
  }

  onClientGone(): void {
    const { upstream } = this
    if (!this.#toUpstream.isOver && !upstream.destroyed) this.#failure ??= 'client_gone'
    this.#onPeerClosed(upstream, this.#toUpstream, this.#toClient)
    this.#onEnd(this.#failure ?? 'complete')
  }

  readonly #checkIdle = (): void => {
    const remainingMs = this.lastByteAtMs + this.#idleTimeoutMs - performance.now()
    if (remainingMs <= 0) this.close(1001)
    else this.#idle = setTimeout(this.#checkIdle, remainingMs)
  }

  #after(delayMs: number, work: () => void): void {
    this.#timers ??= []
    this.#timers.push(setTimeout(work, delayMs))
  }

  /**
   * Called when one side has closed its connection. Ends the connection to the other side. After an orderly end,
   * everything that the closed side sent is still delivered to the other side. Bytes for the closed side are discarded.
   */
  #onPeerClosed(socket: Duplex, to: Direction, from: Direction): void {
    if (!to.isOver) socket.destroy()
    if (socket.destroyed) {
      clearTimeout(this.#idle)
      for (const timer of this.#timers ?? []) clearTimeout(timer)
      return
    }
    from.discard()
    // The other side may still send bytes. If its connection were closed at once, these bytes would cause a reset,
    // which the other side might see before the orderly end.
    const destroyLater = () => this.#after(closeTimeoutMs, () => socket.destroy())
    if (socket.writableFinished) destroyLater()
    else socket.once('finish', destroyLater)
  }
}

/** One direction of a tunnel. If the sending side ends, the receiving side is half-closed. */
class Direction {
  readonly tunnel: OpenTunnel
  readonly #from: TunnelSocket
  readonly #to: TunnelSocket
  readonly #frames = new FrameTracker()
  #pendingClose: Buffer | undefined
  #onOver: (() => void) | undefined
  /** Whether this direction has ended, so that nothing more is relayed. */
  isOver = false

  constructor(tunnel: OpenTunnel, from: TunnelSocket, to: TunnelSocket) {
    this.tunnel = tunnel
    this.#from = from
    this.#to = to
    from[reading] = this
    from.on('data', onData).on('end', onEnd)
    to[writing] = this
    to.on('drain', onDrain)
    from.resume()
  }

  take(chunk: Buffer): void {
    if (this.isOver) return
    this.tunnel.lastByteAtMs = performance.now()
    const forwardable = this.#frames.follow(chunk, this.#pendingClose !== undefined)
    const isWritable = this.#to.write(forwardable === chunk.length ? chunk : chunk.subarray(0, forwardable))
    if (!isWritable) this.#from.pause()
    if (this.#pendingClose !== undefined && this.#frames.isAtBoundary()) this.finish()
  }

  resume(): void {
    this.#from.resume()
  }

  finish(): void {
    if (this.isOver) return
    this.isOver = true
    // Inside another frame, the Close frame would count as payload.
    const frame = this.#frames.hasClosed() || !this.#frames.isAtBoundary() ? undefined : this.#pendingClose
    if (frame === undefined) this.#to.end()
    else this.#to.end(frame)
    // The remaining bytes are read and discarded, so that the gateway notices when this side ends the connection.
    this.#from.resume()
    this.#onOver?.()
  }

  /** Keeps reading, and discards the bytes. */
  discard(): void {
    this.isOver = true
    this.#from.resume()
  }

  /**
   * Ends the direction with the Close frame `frame` as soon as the current frame is complete. Then calls `whenOver`.
   */
  closeWith(frame: Buffer, whenOver: () => void): void {
    if (this.isOver) {
      whenOver()
      return
    }
    this.#pendingClose = frame
    this.#onOver = whenOver
    if (this.#frames.isAtBoundary()) this.finish()
  }
}

const reading = Symbol('reading')
const writing = Symbol('writing')

/** A connection of a tunnel, with the directions that read from it and write to it. */
type TunnelSocket = Duplex & { [reading]?: Direction; [writing]?: Direction }

function onData(this: TunnelSocket, chunk: Buffer): void {
  this[reading]?.take(chunk)
}

function onEnd(this: TunnelSocket): void {
  this[reading]?.finish()
}

function onDrain(this: TunnelSocket): void {
  this[writing]?.resume()
}

function onUpstreamClose(this: TunnelSocket): void {
  this[reading]?.tunnel.onUpstreamClosed()
}

function destroySocket(this: Duplex): void {
  this.destroy()
}
