// Contains every use of a private part of Node. docs/dev/private-parts.md lists the reasons, gains and tests.
import { executionAsyncResource } from 'node:async_hooks'
import type { Worker } from 'node:cluster'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'

/**
 * Creates the response to a request that Node handed over with an `upgrade` event. The response is the last one of its
 * connection. Node does not document the constructor, `assignSocket` and `shouldKeepAlive`.
 *
 * Remove this when Node 24.9 is the oldest supported version, because its `shouldUpgradeCallback` decides before the
 * event. https://github.com/nodejs/node/pull/59824
 */
export function attachResponse(request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request)
  response.assignSocket(request.socket)
  response.shouldKeepAlive = false
  return response
}

/**
 * Returns whether the request makes Node close the connection after this response. Other reasons to close are not
 * considered.
 *
 * Remove this when Node documents `shouldKeepAlive`. https://github.com/nodejs/node/issues/20807
 */
export function isLastResponse(response: ServerResponse): boolean {
  return !response.shouldKeepAlive
}

/**
 * Calls back when the response to a pipelined request owns the connection. Until then, the `socket` of the response is
 * null.
 *
 * Remove this when Node documents an event for this moment. https://github.com/jshttp/on-finished/issues/10
 */
export function onceOwnsConnection(response: ServerResponse, begin: () => void): void {
  response.once('socket', begin)
}

/**
 * Reads a request without a body before Node has parsed the end of the request. Node then emits neither `end` nor
 * `close`, which saves most of its work for the request. Otherwise Node would read the request after the response, with
 * `resume`, `end` and `close`. After the early read, Node's parser keeps the request until the next request. So call
 * `releaseBodyless` when the response has closed.
 *
 * Remove this when every supported Node has the server option `optimizeEmptyRequests`.
 * https://github.com/nodejs/node/pull/59778
 */
export function readBodyless(request: IncomingMessage): void {
  request.read()
}

/**
 * Removes a request from Node's parser after `readBodyless`. Without this, an idle connection would keep its last
 * request in memory.
 *
 * Remove this together with `readBodyless`. https://github.com/nodejs/node/issues/9668
 */
export function releaseBodyless(request: IncomingMessage): void {
  const { parser } = request.socket as { parser?: { incoming: IncomingMessage | null } | null }
  if (parser?.incoming === request) parser.incoming = null
}

/**
 * Calls `end` after the last response of a connection. By default, Node calls `destroySoon`, which ends both directions
 * at once. If bytes of the client are unread, the connection is then reset, and the reset can overtake the response.
 *
 * Remove this when Node closes these connections in two steps. https://github.com/nodejs/node/issues/9085
 */
export function onLastResponse(socket: Socket, end: () => void): void {
  socket.destroySoon = end
}

/**
 * Drops everything that a response still writes to the connection, as if the connection had ended. Node checks
 * `writable` before each write.
 *
 * Remove this when a TLS connection can be ended while bytes of the client are unread.
 * https://github.com/nodejs/node/issues/9085
 */
export function dropFurtherWrites(socket: Socket): void {
  Object.assign(socket, { writable: false })
}

/**
 * Keeps connections open until the last byte of their response is sent. By default, `closeIdleConnections` destroys
 * each connection whose response has ended, even if a slow client has not read all of its bytes. Node's `close` also
 * calls `closeIdleConnections`.
 *
 * Remove this when Node does not treat these connections as idle. https://github.com/nodejs/node/pull/43890
 */
export function keepSocketsWithUnsentData(server: Server, sockets: ReadonlySet<Socket>): void {
  const closeIdleConnections = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const unsent = [...sockets].filter(socket => socket.writableLength > 0)
    // While Node destroys the idle connections, this property hides the method `destroy` of the prototype.
    for (const socket of unsent) socket.destroy = () => socket
    closeIdleConnections()
    for (const socket of unsent) Reflect.deleteProperty(socket, 'destroy')
  }
}

type Done = (error?: Error | null) => void

/**
 * The error codes of a connection that the peer has closed or reset. Bytes that the peer sent earlier must still be
 * read.
 */
const peerGone: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET'])

/**
 * Delays the report of a failed write until reading has ended. A service that refuses an upload sends a response and
 * closes the connection before the upload ends. The next write then fails, and Node destroys the socket before it reads
 * the response. Call this before anything is written.
 *
 * Remove this when Node reads the response first. https://github.com/nodejs/node/issues/54366
 */
export function readBeforeFailing(socket: Socket): void {
  const { _write, _writev } = socket
  const afterReading =
    (done: Done): Done =>
    error => {
      const { code } = (error ?? {}) as NodeJS.ErrnoException
      if (!error || !peerGone.has(code) || socket.readableEnded) done(error)
      else {
        // After a failed write, the end of the stream counts as an error. If it counted as a regular end, a response
        // that was cut off would look complete.
        socket.removeAllListeners('end').on('end', () => done(error))
      }
    }
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, afterReading(done))
  if (_writev !== undefined)
    socket._writev = (chunks, done) => _writev.call(socket, chunks, afterReading(done))
}

/** The format of internal messages of cluster. */
interface ClusterMessage {
  act?: unknown
  seq?: unknown
  ack?: unknown
}

interface Handle {
  close(): void
}

/** Workers that can accept connections now. */
const listening = new Set<Worker>()

/** How long to wait after a worker has died, so that all messages that it sent are read first. */
const drainDelayMs = 100

/**
 * If a worker dies, gives the connections that it has not yet accepted to another worker. Without this, Node forgets
 * them, and their clients wait forever. Nothing was read from these connections, so another worker can accept them.
 * Node does the same with connections that a worker refuses. If Node changes the internal messages of cluster, no
 * connection is rescued, but everything else still works.
 *
 * Remove this when Node itself rescues these connections. https://github.com/nodejs/node-v0.x-archive/pull/7928
 */
export function rescueConnections(worker: Worker): void {
  const inTransit = new Map<unknown, Handle>()
  const { process } = worker
  const tell = (event: string, ...words: unknown[]) => process.emit(event as never, ...(words as never[]))
  const send = process.send.bind(process) as (...words: unknown[]) => boolean
  process.send = (message: ClusterMessage, handle?: unknown, ...more: unknown[]) => {
    if (message.act === 'newconn') inTransit.set(message.seq, handle as Handle)
    return send(message, handle, ...more)
  }
  process.on('internalMessage', (message: ClusterMessage) => inTransit.delete(message.ack))
  worker.once('listening', () => listening.add(worker))
  worker.once('exit', () => {
    // Node emits `disconnect` only after the worker has accepted its connections, and a dead worker never accepts them.
    // So the event is emitted here, after a delay. Its listener below gives the connections to the other workers.
    const late = setTimeout(tell, drainDelayMs, 'disconnect')
    worker.once('disconnect', () => clearTimeout(late))
  })
  worker.once('disconnect', () => {
    listening.delete(worker)
    for (const [seq, handle] of [...inTransit]) {
      if (listening.size === 0) handle.close()
      else tell('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false })
    }
  })
}

let running = 0

/**
 * Prevents V8's optimizing compiler from compiling the WebAssembly that `work` compiles and calls for the first time.
 * The compiler would double the CPU time of a start with the embedded database, and use up to 600 MB for the largest
 * functions. SQL statements would not become faster.
 *
 * The decision whether V8 may optimize a function is made once: when the module is compiled (Node 20), or when the
 * function is first called (Node 24). So later modules, for example undici's parser, are optimized. `wasm-tier-up`
 * stays off after `work`. If it were on again, V8 would optimize the whole module. The flag has no effect on other
 * modules.
 *
 * Remove this when V8 needs less time and memory for large functions, or when PGlite contains smaller functions.
 * https://github.com/colbymchenry/codegraph/issues/298
 */
export async function withoutOptimizingWasm<T>(work: () => Promise<T>): Promise<T> {
  running += 1
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  try {
    return await work()
  } finally {
    running -= 1
    if (running === 0) setFlagsFromString('--wasm-dynamic-tiering')
  }
}

/** Node's record of one tick, with its callback and ids. */
export let tickRecord: object | undefined

/**
 * Keeps `process.nextTick` fast by keeping the record of one tick in memory. V8 forgets the shape (the hidden class) of
 * ticks if a garbage collection finds no record. Node's compiled code then permanently works without this shape. Each
 * request then costs 5 to 25 µs more. Call this once, before the process accepts requests.
 *
 * Remove this when measurements of several processes show the same lowest cost with and without this function.
 * https://github.com/nodejs/node/pull/13446
 */
export function keepShapeOfTicks(): void {
  process.nextTick(() => {
    tickRecord = executionAsyncResource()
  })
}
