// A WebSocket after its 101: relays bytes both ways with back-pressure; inserts a Close frame only between frames.
import type { Duplex } from 'node:stream'
import { closeFrame, createFrameTracker, type FrameTracker } from '../../http/websocket-frames.ts'
import type { Outcome } from '../failures.ts'

/** RFC 6455 §7.4.1: going away, policy violation. */
type CloseCode = 1001 | 1008

export interface Tunnel {
  /** Sends each side a Close frame after its current frame, and ends both connections shortly after. */
  close(code: CloseCode): void
}

interface Options {
  client: Duplex
  upstream: Duplex
  /** The tunnel closes after this long without a byte in either direction. */
  idleTimeoutMs: number
  /** Called when the client's connection has closed. */
  onEnd(outcome: Outcome): void
}

/** How long the current frame may take to end: without its end there is no room for a Close frame. */
const frameTimeoutMs = 300

/** How long both sides have to answer our Close frame. */
const closeTimeoutMs = 500

export function openTunnel({ client, upstream, idleTimeoutMs, onEnd }: Options): Tunnel {
  let lastByteAtMs = performance.now()
  const onByte = () => {
    lastByteAtMs = performance.now()
  }
  let failure: Outcome | undefined
  const toClient = openDirection(upstream, client, onByte)
  const toUpstream = openDirection(client, upstream, onByte)
  let isClosing = false
  const timers = new Set<NodeJS.Timeout>()
  const after = (delayMs: number, work: () => void) => timers.add(setTimeout(work, delayMs))

  const tunnel: Tunnel = {
    close(code) {
      if (isClosing) return
      isClosing = true
      // The upstream sees the client leave. Notified before the frame to the client ends, it might not complete it.
      toClient.closeWith(closeFrame(code, false), () =>
        toUpstream.closeWith(closeFrame(1001, true), () => {}),
      )
      after(frameTimeoutMs, () => {
        if (!toClient.isOver()) client.destroy()
      })
      after(frameTimeoutMs + closeTimeoutMs, () => {
        client.destroy()
        upstream.destroy()
      })
    },
  }
  const checkIdle = () => {
    const remainingMs = lastByteAtMs + idleTimeoutMs - performance.now()
    if (remainingMs <= 0) tunnel.close(1001)
    else after(remainingMs, checkIdle)
  }
  checkIdle()

  upstream.on('error', () => upstream.destroy())
  client.on('error', () => client.destroy())
  upstream.once('close', () => {
    if (!toClient.isOver()) failure ??= 'broken'
    onPeerClosed(client, toClient, toUpstream)
  })
  client.once('close', () => {
    if (!toUpstream.isOver() && !upstream.destroyed) failure ??= 'client_gone'
    onPeerClosed(upstream, toUpstream, toClient)
    onEnd(failure ?? 'complete')
  })
  return tunnel

  /** The other side is gone: what it sent before an orderly end is still delivered, and replies are discarded. */
  function onPeerClosed(socket: Duplex, to: Direction, from: Direction): void {
    if (!to.isOver()) socket.destroy()
    if (socket.destroyed) {
      for (const timer of timers) clearTimeout(timer)
      return
    }
    from.discard()
    // If closed at once, bytes that it still sends would cause a reset, which may overtake the end.
    const destroyLater = () => after(closeTimeoutMs, () => socket.destroy())
    if (socket.writableFinished) destroyLater()
    else socket.once('finish', destroyLater)
  }
}

interface Direction {
  /** Whether everything in this direction has been written. */
  isOver(): boolean
  /** Ends the direction after its current frame, then calls back. */
  closeWith(frame: Buffer, whenOver: () => void): void
  /** Keeps reading, and discards the bytes. */
  discard(): void
}

/** Half-closes the receiving side when the sending side ends. */
function openDirection(from: Duplex, to: Duplex, onByte: () => void): Direction {
  const frames: FrameTracker = createFrameTracker()
  let pendingClose: Buffer | undefined
  let onOver = () => {}
  let isOver = false

  function finish(): void {
    isOver = true
    // Inside a frame it would be taken for part of that frame.
    if (pendingClose !== undefined && !frames.hasClosed() && frames.isAtBoundary()) to.end(pendingClose)
    else to.end()
    // Further bytes are read and discarded, so that the end behind them is seen.
    from.resume()
    onOver()
  }

  from.on('data', (chunk: Buffer) => {
    if (isOver) return
    onByte()
    const forwardable = frames.follow(chunk, pendingClose !== undefined)
    if (!to.write(forwardable === chunk.length ? chunk : chunk.subarray(0, forwardable))) from.pause()
    if (pendingClose !== undefined && frames.isAtBoundary()) finish()
  })
  from.on('end', () => {
    if (!isOver) finish()
  })
  to.on('drain', () => from.resume())
  from.resume()

  return {
    isOver: () => isOver,
    discard() {
      isOver = true
      from.resume()
    },
    closeWith(frame, whenOver) {
      if (isOver) {
        whenOver()
        return
      }
      pendingClose = frame
      onOver = whenOver
      if (frames.isAtBoundary()) finish()
    },
  }
}
