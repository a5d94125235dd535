// The connections to a target, one request on each at a time: who finds none free waits here, and can still be turned away.
import { buildConnector } from 'undici'
import { ClientGone } from '../../refusals/client-gone.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { Carrier, type Connection } from './connection.ts'

export interface Connections {
  isFree(): boolean
  /** One that is free, or nothing. */
  tryTake(): Connection | undefined
  /**
   * Waits for one, first come first served.
   * @throws Refusal 503 `upstream_unavailable` when the wait is over (CONTRACT §2, `connections`)
   * @throws ClientGone when `onGone` calls back
   */
  take(onGone: (leave: () => void) => void): Promise<Connection>
  /** Closes them, whatever is in flight; what is sent from now on fails. */
  close(): Promise<void>
}

interface Parts {
  origin: string
  /** Connections at most: `connections`. */
  most: number
  /** Milliseconds in which one must be open, or free: `timeouts.connect`. */
  wait: number
  tls: { ca?: string }
  /** Milliseconds: to the answer's head, between two chunks of its body. */
  timeouts: { readonly response: number; readonly idle: number }
}

/**
 * Requests wait here and not in undici's queue: what waits there cannot be taken out again, so that those that were
 * refused long ago would stay in memory, with all their fields, for as long as the connections are busy. Its Pool also
 * looks at every busy connection twice for each request: some 4 % of what one costs where 48 are in flight.
 */
export function openConnections({ origin, most, wait, tls, timeouts }: Parts): Connections {
  // One for all: it remembers TLS sessions.
  const connect = buildConnector({ timeout: wait, ...tls })
  const carriers: Carrier[] = []
  /** The last is taken first: the one that was busy a moment ago. */
  const free: Carrier[] = []
  const waiting = new Set<(connection: Connection) => void>()
  let isClosed = false

  function onFree(carrier: Carrier): void {
    const [next] = waiting
    // Handed over, so that nobody who comes now gets in before those who wait.
    if (next !== undefined) next(carrier)
    // Not tried again while there are others.
    else if (carrier.hasFailed) free.unshift(carrier)
    else free.push(carrier)
  }

  function open(): Carrier {
    const carrier = new Carrier({ origin, connect, timeouts, onFree })
    carriers.push(carrier)
    if (isClosed) void carrier.close()
    return carrier
  }

  return {
    isFree: () => free.length > 0 || carriers.length < most,
    tryTake: () => free.pop() ?? (carriers.length < most ? open() : undefined),
    take(onGone) {
      return new Promise((resolve, reject) => {
        const leave = (error: Error) => {
          clearTimeout(timer)
          if (waiting.delete(enter)) reject(error)
        }
        const enter = (connection: Connection) => {
          clearTimeout(timer)
          waiting.delete(enter)
          resolve(connection)
        }
        const timer = setTimeout(() => leave(new Refusal('upstream_unavailable')), wait)
        waiting.add(enter)
        onGone(() => leave(new ClientGone()))
      })
    },
    async close() {
      isClosed = true
      for (const enter of waiting) enter(open())
      await Promise.all(carriers.map(carrier => carrier.close()))
    },
  }
}
