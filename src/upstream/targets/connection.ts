// Implements a connection to an endpoint. It is an undici Client that carries one request at a time.
import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'
import type { ClientKey } from '../../identity/client-key.ts'
import { correctUndici } from '../undici-internals.ts'

/** An acquired connection. The caller must dispatch one request on it, or release it. */
export interface Connection {
  /**
   * Works like `dispatch` of undici. The connection returns to its pool when it can carry another request, even if this
   * request fails.
   */
  dispatch(options: Dispatcher.DispatchOptions, inFlight: InFlight): void
  release(): void
}

export interface InFlight extends Dispatcher.DispatchHandler {
  readonly isOver: boolean
  /**
   * Called when the upstream has ended its side. A response that is paused for a slow reader must now be read
   * completely.
   */
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
  /**
   * The most recently opened socket. An earlier socket may still be in use as a WebSocket, but its events must not
   * affect the current request.
   */
  #socket: Socket | undefined
  /** The client whose share includes this connection; undefined while the connection is free. */
  holder: ClientKey | undefined
  /** Whether the last attempt to open the connection failed. */
  hasFailed = false
  /** When the socket was opened, from `performance.now()`. */
  #openedAtMs = Number.POSITIVE_INFINITY
  /** A factor between 0.9 and 1.1 for the maximum age, so that connections opened together do not end together. */
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
      // If undici rejects a request immediately, it may emit no `drain`, so this microtask frees the connection. If
      // undici does emit `drain`, the event comes before this microtask.
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
        // If the upstream closes while a part of the response is paused, undici 7 ends the process. So the response is
        // resumed first. Remove this workaround after the upgrade to undici 8.
        // https://github.com/nodejs/undici/issues/5360
        socket.on('end', () => {
          if (socket === this.#socket) this.#inFlight?.onUpstreamEnd()
        })
      }),
      // The connection carries one request at a time. With several requests at a time, a badly framed response could
      // reach another client.
      pipelining: 1,
    })
    client.on('drain', () => this.#free())
    client.on('connectionError', () => {
      this.hasFailed = true
      // If the certificate has a wrong name, undici's client still counts the failed request as running. This client is
      // then replaced.
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
