// The connections to a target, one request on each at a time: who finds none free waits here, and can still be turned away.
import { buildConnector, Client, type Dispatcher } from 'undici'
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'

/** Told how a request goes, and whether it is over. */
export type Sent = Dispatcher.DispatchHandler & { readonly isOver: boolean }

/** Of whoever took it: one request is sent on it, or it is put back. */
export interface Connection {
  /** As undici's; it comes back by itself when it can carry another request, however this one ends. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Sent): void
  putBack(): void
}

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
  /** Closes them, whatever is in flight. */
  close(): Promise<void>
}

interface Parts {
  origin: string
  /** Connections at most: `connections`. */
  most: number
  /** Milliseconds in which one must be open, or free: `timeouts.connect`. */
  wait: number
  tls: { ca?: string }
  /** Milliseconds, likewise: to the answer's head, between two chunks of its body. */
  timeouts: { response: number; idle: number }
}

/**
 * In front of undici and not in its queue: what waits there cannot be taken out again, so that requests that were
 * refused long ago would stay in memory, with all their fields, for as long as the connections are busy. Nor by its
 * Pool, which looks at every busy connection twice for each request: some 4 % of what one costs where 48 are in flight.
 */
export function openConnections({ origin, most, wait, tls, timeouts }: Parts): Connections {
  // One for all: it remembers TLS sessions.
  const connect = buildConnector({ timeout: wait, ...tls })
  const clients: Client[] = []
  /** The last is taken first: the one that was busy a moment ago. */
  const free: Carrier[] = []
  const waiting = new Set<(connection: Connection) => void>()

  function putBack(carrier: Carrier): void {
    const [next] = waiting
    // Handed over, so that nobody who comes now gets in before those who wait.
    if (next !== undefined) next(carrier)
    else if (carrier.isOpen) free.push(carrier)
    // One that could not be opened is not tried again while others are open.
    else free.unshift(carrier)
  }

  function open(): Carrier {
    const client = new Client(origin, {
      connect,
      // One request a connection: an answer that an upstream frames badly must not become another client's.
      pipelining: 1,
      headersTimeout: timeouts.response,
      bodyTimeout: timeouts.idle,
    })
    clients.push(client)
    return new Carrier(client, putBack)
  }

  function tryTake(): Connection | undefined {
    return free.pop() ?? (clients.length < most ? open() : undefined)
  }

  return {
    isFree: () => free.length > 0 || clients.length < most,
    tryTake,
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
      await Promise.all(clients.map(client => client.destroy()))
    },
  }
}

class Carrier implements Connection {
  readonly #client: Client
  readonly #onFree: (carrier: Carrier) => void
  #isBusy = false
  #isOpen = false

  constructor(client: Client, onFree: (carrier: Carrier) => void) {
    this.#client = client
    this.#onFree = onFree
    client.on('drain', () => this.#comeBack())
    client.on('connect', () => {
      this.#isOpen = true
    })
    client.on('disconnect', () => {
      this.#isOpen = false
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Sent): void {
    this.#isBusy = true
    this.#client.dispatch(options, handler)
    // What undici refuses to send drains nothing. Behind a drain that is on its way already.
    if (handler.isOver) queueMicrotask(() => this.#client.stats.size === 0 && this.#comeBack())
  }

  putBack(): void {
    this.#onFree(this)
  }

  #comeBack(): void {
    if (!this.#isBusy) return
    this.#isBusy = false
    this.#onFree(this)
  }
}
