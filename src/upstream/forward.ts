// Forwards one request and streams its response back, with back-pressure both ways and no body buffered whole.
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { mayBeSmall, type ReadAhead, readAhead } from '../http/read-ahead.ts'
import { RequestBody } from '../http/request-body.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import { tooManyConnections } from '../refusals/limits.ts'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'
import type { ForwardOptions, Reserved, TakenConnection } from './forward-options.ts'
import { ResponseRelay } from './response-relay.ts'
import type { Connection } from './targets/connection.ts'
import { EndpointRetired, type Wait } from './targets/connection-pool.ts'
import type { Endpoint } from './targets/endpoint.ts'

/** Once a response has begun, a failure breaks the client's connection: half a response never looks complete. */
export function forward(options: ForwardOptions): void {
  const { hasBody, contentLength } = options
  if (hasBody && mayBeSmall(contentLength)) void forwardSmall(options)
  else begin(options, undefined)
}

/** Reads the body before it takes a connection, which a client that sends slowly would keep from other requests. */
async function forwardSmall(options: ForwardOptions): Promise<void> {
  const { request, response, expectsContinue, maxBodyBytes, bodyIdleTimeoutMs, contentLength } = options
  let { reserved } = options
  if (reserved?.connection !== undefined && !request.complete) {
    const { endpoint, client, connection } = reserved
    connection.release()
    endpoint.pool.reserve(client)
    reserved = { ...reserved, connection: undefined }
  }
  let body: ReadAhead
  try {
    if (response.destroyed) throw new ClientDisconnected()
    if (expectsContinue) response.writeContinue()
    body = await readAhead(request, {
      contentLength,
      maxBytes: maxBodyBytes,
      idleTimeoutMs: bodyIdleTimeoutMs,
    })
  } catch (thrown) {
    giveBack(reserved)
    options.observer.onRefused(thrown)
    return
  }
  begin({ ...options, reserved, expectsContinue: false }, body)
}

function begin(options: ForwardOptions, body: ReadAhead | undefined): void {
  const { reserved } = options
  if (reserved?.connection !== undefined) {
    send(options, { endpoint: reserved.endpoint, connection: reserved.connection }, noneTried, body)
    return
  }
  giveBack(reserved)
  attempt(options, noneTried, body)
}

/** Gives up what was reserved for a request that is refused, or that takes a connection now. */
export function giveBack(reserved: Reserved | undefined): void {
  if (reserved?.connection !== undefined) reserved.connection.release()
  else reserved?.endpoint.pool.cancel(reserved.client)
}

const noneTried: readonly Endpoint[] = []

/** @param tried endpoints that have failed it: as many as it was sent before */
function attempt(options: ForwardOptions, tried: readonly Endpoint[], body: ReadAhead | undefined): void {
  let taken: TakenConnection | Promise<TakenConnection>
  try {
    taken = takeConnection(options, tried, waitOf(options))
  } catch (refusal) {
    options.observer.onRefused(refusal)
    return
  }
  if (!(taken instanceof Promise)) send(options, taken, tried, body)
  else {
    taken.then(
      freed => send(options, freed, tried, body),
      thrown => options.observer.onRefused(thrown),
    )
  }
}

/**
 * Picks an endpoint and takes a connection to it. The caller sends a request on it, or releases it.
 * @param tried endpoints to avoid
 * @param wait for a free connection, if not as usual
 * @throws Refusal 503 `upstream_unavailable` if there is none; what `wait` says if none becomes free in time
 * @throws Refusal 429 `rate_limited` if the client holds as many as it may, unless the request was admitted before: its
 *   use is counted, or it was sent
 * @throws ClientDisconnected if the client leaves meanwhile
 */
export function takeConnection(
  options: Pick<ForwardOptions, 'upstream' | 'splitKey' | 'client' | 'countsUse' | 'response'>,
  tried: readonly Endpoint[] = noneTried,
  wait?: Wait,
): TakenConnection | Promise<TakenConnection> {
  const { upstream, splitKey, client, countsUse, response } = options
  const endpoint = upstream.pickEndpoint(splitKey, tried, client)
  if (endpoint === undefined) throw new Refusal('upstream_unavailable')
  if (!countsUse && tried.length === 0 && !endpoint.pool.admits(client))
    throw tooManyConnections(upstream.connectionLimit)
  const connection = endpoint.pool.tryAcquire(client)
  if (connection !== undefined) return { endpoint, connection }
  return endpoint.pool.acquire(client, response, wait).then(
    freed => ({ endpoint, connection: freed }),
    thrown => {
      if (thrown instanceof EndpointRetired) return takeConnection(options, tried, wait)
      throw thrown
    },
  )
}

/** A use that is stored waits as long as for a response: a refusal would have spent it. */
function waitOf({ countsUse, responseTimeoutMs }: ForwardOptions): Wait | undefined {
  return countsUse ? { ms: responseTimeoutMs, refusal: 'upstream_timeout' } : undefined
}

function send(
  options: ForwardOptions,
  { endpoint, connection }: TakenConnection,
  tried: readonly Endpoint[],
  read: ReadAhead | undefined,
): void {
  // A response emits `close` only once, and this one has: a request dispatched now would never be aborted.
  if (options.response.destroyed) {
    connection.release()
    options.observer.onRefused(new ClientDisconnected())
  } else dispatch(options, endpoint, tried, connection, read)
}

/**
 * Sends the request to one endpoint, within the span of this attempt. The relay reports to the observer, or retries.
 * @param tried endpoints that have failed it
 * @param connection to the endpoint
 * @param read what was read of the body, if it may be small
 */
function dispatch(
  options: ForwardOptions,
  endpoint: Endpoint,
  tried: readonly Endpoint[],
  connection: Connection,
  read: ReadAhead | undefined,
): void {
  const { request, upstream, fields } = options
  const stream = options.hasBody && !read?.isWhole ? streamOf(options, read) : null
  fields[1] = options.host ?? endpoint.host
  const span = options.trace && beginAttemptSpan(options, endpoint, tried.length)
  const retry =
    tried.length < upstream.retries ? () => attempt(options, [...tried, endpoint], read) : undefined
  const handler = new ResponseRelay(options, endpoint, retry, stream, span)
  const dispatchOptions = {
    origin: endpoint.origin,
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: options.path,
    headers: fields,
    body: stream ?? wholeBody(options, read),
    headersTimeout: options.responseTimeoutMs,
    bodyTimeout: upstream.timeouts.idle,
    upgrade: options.webSocket === undefined ? null : 'websocket',
    // Otherwise undici would use the Host header, whatever a route sets there.
    servername: endpoint.serverName,
  }
  try {
    connection.dispatch(dispatchOptions, handler)
  } catch (error) {
    handler.onError(error as Error)
  }
}

function streamOf(
  { request, maxBodyBytes, bodyIdleTimeoutMs }: ForwardOptions,
  read: ReadAhead | undefined,
): RequestBody {
  return new RequestBody(request, {
    maxBytes: maxBodyBytes,
    idleTimeoutMs: bodyIdleTimeoutMs,
    begun: read?.chunks,
  })
}

/** A chunked body stays chunked: undici declares the length of bytes, but not of a stream. */
function wholeBody({ contentLength }: ForwardOptions, read: ReadAhead | undefined): Buffer | Readable | null {
  if (read === undefined) return null
  const bytes = Buffer.concat(read.chunks)
  return contentLength === undefined && bytes.length > 0 ? Readable.from([bytes]) : bytes
}

function beginAttemptSpan(
  { trace, request, path, fields }: ForwardOptions,
  { origin }: Endpoint,
  resendCount: number,
): AttemptSpan | undefined {
  const span = trace?.begin({ method: request.method ?? '', origin, path, resendCount })
  if (span?.traceparent !== undefined) fields[3] = span.traceparent
  return span
}
