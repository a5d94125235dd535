// A WebSocket after its 101: bytes both ways with back-pressure, and a Close frame of ours only where one may stand.
import type { Duplex } from 'node:stream'
import { closeFrame, type Frames, followFrames } from '../../http/websocket-frames.ts'
import type { Outcome } from '../outcome.ts'

/** RFC 6455 §7.4.1: going away, policy violation. */
export type CloseCode = 1001 | 1008

export interface Tunnel {
  /** Tells both sides, at the end of the frame that is under way to each, and ends both connections shortly after. */
  close(code: CloseCode): void
}

interface Parts {
  client: Duplex
  upstream: Duplex
  /** Milliseconds without a byte in either direction after which it is closed. */
  idle: number
  /** Called when the client's connection has closed. */
  onEnd(outcome: Outcome): void
}

/** Milliseconds for a frame that is under way to end: after that there is no room for a Close frame. */
const frameLimit = 300

/** Milliseconds in which the sides may answer our Close frame. */
const closeLimit = 500

export function openTunnel({ client, upstream, idle, onEnd }: Parts): Tunnel {
  let lastByte = performance.now()
  const onByte = () => {
    lastByte = performance.now()
  }
  let broken: Outcome | undefined
  const down = openLane(upstream, client, onByte)
  const up = openLane(client, upstream, onByte)
  let isClosing = false
  const timers = new Set<NodeJS.Timeout>()
  const after = (time: number, work: () => void) => timers.add(setTimeout(work, time))

  const tunnel: Tunnel = {
    close(code) {
      if (isClosing) return
      isClosing = true
      // To the service it is the client that leaves; told before the frame to the client ends, it might not end it.
      down.closeWith(closeFrame(code, false), () => up.closeWith(closeFrame(1001, true), () => {}))
      after(frameLimit, () => {
        if (!down.isOver()) client.destroy()
      })
      after(frameLimit + closeLimit, () => {
        client.destroy()
        upstream.destroy()
      })
    },
  }
  const watch = () => {
    const left = lastByte + idle - performance.now()
    if (left <= 0) tunnel.close(1001)
    else after(left, watch)
  }
  watch()

  upstream.on('error', () => upstream.destroy())
  client.on('error', () => client.destroy())
  upstream.once('close', () => {
    if (!down.isOver()) broken ??= 'broken'
    leave(client, down, up)
  })
  client.once('close', () => {
    if (!up.isOver() && !upstream.destroyed) broken ??= 'client_gone'
    leave(upstream, up, down)
    onEnd(broken ?? 'complete')
  })
  return tunnel

  /** The other side is gone: what it sent before it ended in order is still delivered, and nobody hears the answer. */
  function leave(socket: Duplex, to: Lane, from: Lane): void {
    if (!to.isOver()) socket.destroy()
    if (socket.destroyed) {
      for (const timer of timers) clearTimeout(timer)
      return
    }
    from.discard()
    // Closed at once, what it still sends would reset the connection, and that may overtake the end.
    const linger = () => after(closeLimit, () => socket.destroy())
    if (socket.writableFinished) linger()
    else socket.once('finish', linger)
  }
}

interface Lane {
  /** Whether all that will go this way has been written. */
  isOver(): boolean
  /** Ends it behind the frame that is under way, and then calls back. */
  closeWith(frame: Buffer, whenOver: () => void): void
  /** Reads on and throws away. */
  discard(): void
}

/** One direction. Half-closes the reader's side when the writer's side ends. */
function openLane(from: Duplex, to: Duplex, onByte: () => void): Lane {
  const frames: Frames = followFrames()
  let last: Buffer | undefined
  let onOver = () => {}
  let isOver = false

  function finish(): void {
    isOver = true
    // Within a frame it would be taken for a part of it.
    if (last !== undefined && !frames.hasClosed() && frames.isAtBoundary()) to.end(last)
    else to.end()
    // What still comes is read and thrown away, so that the end behind it is seen.
    from.resume()
    onOver()
  }

  from.on('data', (chunk: Buffer) => {
    if (isOver) return
    onByte()
    const followed = frames.follow(chunk, last !== undefined)
    if (!to.write(followed === chunk.length ? chunk : chunk.subarray(0, followed))) from.pause()
    if (last !== undefined && frames.isAtBoundary()) finish()
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
      last = frame
      onOver = whenOver
      if (frames.isAtBoundary()) finish()
    },
  }
}
