// One connection to an endpoint: an undici Client that carries one request at a time.
import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'
import type { ClientKey } from '../../identity/client-key.ts'
import { correctUndici } from '../undici-internals.ts'

/** An acquired connection: dispatch one request on it, or release it. */
export interface Connection {
  /** As undici's. The connection returns to its pool once it can carry another request, however this one ends. */
  dispatch(options: Dispatcher.DispatchOptions, inFlight: InFlight): void
  release(): void
}

/** The handler of a request in progress; it knows whether the request is over. */
export interface InFlight extends Dispatcher.DispatchHandler {
  readonly isOver: boolean
  /** The upstream ended its side: what is paused of its response, for a slow reader, must be read now. */
  onUpstreamEnd(): void
}

interface Options {
  origin: string
  connect: buildConnector.connector
  /** Called when the connection can carry another request. */
  onFree(connection: PooledConnection): void
}

export class PooledConnection implements Connection {
  readonly #options: Options
  #client: Client
  /** The request in progress; undefined while the connection is free. */
  #inFlight: InFlight | undefined
  /** The socket opened last: an earlier one may live on as a WebSocket, and does not concern the current request. */
  #socket: Socket | undefined
  /** The client that it counts for; undefined while it is free. */
  holder: ClientKey | undefined
  /** Whether the last attempt to open it failed. */
  hasFailed = false
  /** From `performance.now()`: when the socket was opened. */
  #openedAtMs = Number.POSITIVE_INFINITY
  /** Between 0.9 and 1.1: connections opened together do not end together. */
  readonly #jitter = 0.9 + Math.random() * 0.2

  constructor(options: Options) {
    this.#options = options
    this.#client = this.#makeClient()
  }

  /** @param ageMs `connection_age` */
  isOlderThan(ageMs: number): boolean {
    return performance.now() - this.#openedAtMs > ageMs * this.#jitter
  }

  dispatch(options: Dispatcher.DispatchOptions, inFlight: InFlight): void {
    const client = this.#client
    this.#inFlight = inFlight
    this.hasFailed = false
    try {
      client.dispatch(options, inFlight)
    } finally {
      // A request that undici rejects at once may emit no `drain`; if it does, that comes before this.
      if (inFlight.isOver)
        queueMicrotask(() => this.#inFlight === inFlight && client.stats.size === 0 && this.#free())
    }
  }

  release(): void {
    this.#options.onFree(this)
  }

  close(): Promise<void> {
    return this.#client.destroy()
  }

  #makeClient(): Client {
    const { origin, connect } = this.#options
    const client = new Client(origin, {
      connect: correctUndici(connect, socket => {
        this.#socket = socket
        this.#openedAtMs = performance.now()
        // undici 7 ends the process if an upstream closes while a part of the response is paused, so the response is
        // resumed first. Can go with undici 8. https://github.com/nodejs/undici/issues/5360
        socket.on('end', () => {
          if (socket === this.#socket) this.#inFlight?.onUpstreamEnd()
        })
      }),
      // One request per connection: a response that an upstream frames badly must not reach another client.
      pipelining: 1,
    })
    client.on('drain', () => this.#free())
    client.on('connectionError', () => {
      this.hasFailed = true
      // If the certificate has another name, undici counts the request that it has failed as still running.
      if (client.stats.running === 0) return
      this.#client = this.#makeClient()
      void client.destroy()
      this.#free()
    })
    return client
  }

  #free(): void {
    if (this.#inFlight === undefined) return
    this.#inFlight = undefined
    this.#options.onFree(this)
  }
}
