// Forwards one request and streams its response back, with back-pressure in both directions. No body is buffered whole,
// except a small request body.
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { mayBeSmall, type ReadAhead, readAhead } from '../http/read-ahead.ts'
import { RequestBody } from '../http/request-body.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import { ClientDisconnected } from '../refusals/refusal.ts'
import type { ForwardOptions } from './forward-options.ts'
import {
  cancelReservation,
  keepCounted,
  type TakenConnection,
  takeConnection,
  takeReserved,
} from './reservation.ts'
import { type RelayEnd, ResponseRelay } from './response-relay.ts'
import type { Wait } from './targets/connection-pool.ts'
import type { Endpoint } from './targets/endpoint.ts'

/**
 * Sends the request. If the attempt fails and another attempt is safe, sends the request again, as often as `retries`
 * allows. If a connection is free and no body must be read in advance, dispatches the request synchronously.
 */
export async function forward(options: ForwardOptions): Promise<void> {
  const { request, response, upstream, client, observer } = options
  let { reservation } = options
  const isCounted = reservation !== undefined
  const tried: Endpoint[] = []
  try {
    let body: ReadAhead | undefined
    if (options.hasBody && mayBeSmall(options.contentLength)) {
      // A client that sends slowly must not occupy a connection that other requests need.
      if (reservation !== undefined && !request.complete) reservation = keepCounted(reservation)
      body = await readSmallBody(options)
    }
    for (;;) {
      // This check is needed before each wait, because the response emits `close` only once. A request that starts to
      // wait after this event would not be notified.
      if (response.destroyed) throw new ClientDisconnected()
      const reserved = takeReserved(reservation)
      reservation = undefined
      const isAdmitted = isCounted || tried.length > 0
      const wait = isCounted ? waitOfCounted(options) : undefined
      const taken =
        reserved ?? takeConnection({ upstream, client, waiting: observer }, { tried, isAdmitted, wait })
      const connected = taken instanceof Promise ? await taken : taken
      // If the client left during the wait, no later event would abort the request. So the request is not dispatched.
      if (response.destroyed) {
        connected.connection.release()
        throw new ClientDisconnected()
      }
      const end = await sendOnce(options, connected, tried.length, body)
      if (end !== 'unanswered') return
      tried.push(connected.endpoint)
    }
  } catch (thrown) {
    cancelReservation(reservation)
    observer.onRefused(thrown)
  }
}

/** @throws Refusal, or ClientDisconnected */
async function readSmallBody(options: ForwardOptions): Promise<ReadAhead> {
  const { request, response, contentLength, maxBodyBytes, bodyIdleTimeoutMs } = options
  if (response.destroyed) throw new ClientDisconnected()
  if (options.expectsContinue) response.writeContinue()
  return readAhead(request, { contentLength, maxBytes: maxBodyBytes, idleTimeoutMs: bodyIdleTimeoutMs })
}

/**
 * Returns the wait of a request that is already counted. If this request were refused, its use would be wasted. So it
 * may wait for a connection as long as for a response.
 */
function waitOfCounted({ responseTimeoutMs }: ForwardOptions): Wait {
  return { ms: responseTimeoutMs, refusal: 'upstream_timeout' }
}

/**
 * Sends the request to one endpoint, within the span of this attempt.
 * @param resendCount how many times the request was sent before
 * @param read the part of the body that was read before the connection was taken
 */
function sendOnce(
  options: ForwardOptions,
  { endpoint, connection }: TakenConnection,
  resendCount: number,
  read: ReadAhead | undefined,
): Promise<RelayEnd> {
  const { request, upstream, fields } = options
  const stream = options.hasBody && !read?.isWhole ? streamOf(options, read) : null
  fields[1] = options.host ?? endpoint.host
  const span = options.trace && beginAttemptSpan(options, endpoint, resendCount)
  const dispatchOptions = {
    origin: endpoint.origin,
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: options.path,
    headers: fields,
    body: stream ?? wholeBody(options, read),
    headersTimeout: options.responseTimeoutMs,
    bodyTimeout: upstream.timeouts.idle,
    upgrade: options.webSocket === undefined ? null : 'websocket',
    // By default, undici would use the Host header as the server name for TLS, but a route may change the Host header.
    servername: endpoint.serverName,
  }
  return new Promise(resolve => {
    const relay = new ResponseRelay({
      options,
      endpoint,
      body: stream,
      // If the body was read in advance, the client has already received `100 Continue`.
      sendsContinue: options.expectsContinue && read === undefined,
      mayRetry: resendCount < upstream.retries,
      span,
      onOver: resolve,
    })
    connection.dispatch(dispatchOptions, relay)
  })
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

/**
 * Returns the whole body if it was read in advance. A chunked body is returned as a stream, so that it stays chunked.
 * undici sends a `Content-Length` for a buffer, but not for a stream.
 */
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
