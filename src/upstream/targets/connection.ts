// One connection to a target: an undici Client that carries one request at a time, and what has to be mended of it.
import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'
import { patchUndiciParser } from './undici-parser.ts'

/** Of whoever took it: one request is sent on it, or it is put back. */
export interface Connection {
  /** As undici's; it comes back by itself when it can carry another request, however this one ends. */
  dispatch(options: Dispatcher.DispatchOptions, inFlight: InFlight): void
  release(): void
}

/** Who is told how a request goes, and knows whether it is over. */
export interface InFlight extends Dispatcher.DispatchHandler {
  readonly isOver: boolean
  /** The upstream says no more: what is held back of its answer, for a slow reader, has to be heard now. */
  onUpstreamEnd(): void
}

interface Options {
  origin: string
  connect: buildConnector.connector
  /** Milliseconds: to the answer's head, between two chunks of its body. */
  timeouts: { readonly response: number; readonly idle: number }
  /** Told when it can carry another request. */
  onFree(connection: PooledConnection): void
}

export class PooledConnection implements Connection {
  readonly #options: Options
  #client: Client
  /** What is on it; nothing while it is free. */
  #inFlight: InFlight | undefined
  /** The last that was opened: one before it may live on as a WebSocket's, and is no matter of what is on this one. */
  #socket: Socket | undefined
  #hasFailed = false

  constructor(options: Options) {
    this.#options = options
    this.#client = this.#makeClient()
  }

  /** It could not be opened when it was tried last. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  dispatch(options: Dispatcher.DispatchOptions, inFlight: InFlight): void {
    const client = this.#client
    this.#inFlight = inFlight
    this.#hasFailed = false
    try {
      client.dispatch(options, inFlight)
    } finally {
      // What undici refuses at once may drain nothing; where it does, that comes before this.
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
    const { origin, connect, timeouts } = this.#options
    const client = new Client(origin, {
      connect: withUndiciWorkarounds(connect, socket => {
        this.#socket = socket
        socket.on('end', () => {
          if (socket === this.#socket) this.#inFlight?.onUpstreamEnd()
        })
      }),
      // One request a connection: an answer that an upstream frames badly must not become another client's.
      pipelining: 1,
      headersTimeout: timeouts.response,
      bodyTimeout: timeouts.idle,
    })
    client.on('drain', () => this.#free())
    client.on('connectionError', () => {
      this.#hasFailed = true
      // Where the certificate is another's, undici takes the request that it has failed for one that is still under way.
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

/**
 * undici 7 ends the process where an upstream ends or resets a connection that it said it would close (`Connection: close`,
 * HTTP/1.0) while something of the answer is held back (nodejs/undici#5360): it takes the connection's end for the
 * answer's, and asserts that it holds nothing back. So that is let go first. And a reset is no end: what was cut off by one
 * would look whole, so undici is not told that it was one.
 */
function withUndiciWorkarounds(
  connect: buildConnector.connector,
  onSocket: (socket: Socket) => void,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      let code: string | undefined
      onSocket(socket)
      socket.on('error', (error: NodeJS.ErrnoException) => {
        code = error.code
        if (code === 'ECONNRESET') error.code = 'ECONNABORTED'
      })
      // It adds its own listeners here, which are called between the two.
      callback(null, socket)
      patchUndiciParser(socket)
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (code !== undefined) error.code = code
      })
    })
}
