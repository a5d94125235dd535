// Forwards one request and streams its response back, with back-pressure both ways and no body buffered whole.
import type { Dispatcher } from 'undici'
import { RequestBody } from '../http/request-body.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import { ClientDisconnected } from '../refusals/refusal.ts'
import type { ForwardOptions } from './forward-options.ts'
import { ResponseRelay } from './response-relay.ts'
import type { Connection } from './targets/connection.ts'
import type { Target } from './targets/target.ts'

/** Once a response has begun, a failure breaks the client's connection: half a response never looks complete. */
export function forward(options: ForwardOptions): void {
  attempt(options, options.upstream.pickTarget(), options.upstream.retries)
}

/** @param retriesLeft how often the request may still be sent again, while no byte of a response has come */
function attempt(options: ForwardOptions, target: Target, retriesLeft: number): void {
  const connection = target.pool.tryAcquire()
  if (connection !== undefined) send(options, target, connection, retriesLeft)
  else {
    target.pool.acquire(options.response).then(
      freed => send(options, target, freed, retriesLeft),
      thrown => options.observer.onRefused(thrown),
    )
  }
}

function send(options: ForwardOptions, target: Target, connection: Connection, retriesLeft: number): void {
  // A response emits `close` only once, and this one has: a request dispatched now would never be aborted.
  if (options.response.destroyed) {
    connection.release()
    options.observer.onRefused(new ClientDisconnected())
  } else dispatch(options, target, connection, retriesLeft)
}

function retry(options: ForwardOptions, failed: Target, retriesLeft: number): void {
  attempt(options, options.upstream.pickTarget(failed), retriesLeft - 1)
}

/**
 * Sends the request to one target, within the span of this attempt. The relay reports to the observer, or retries.
 * @param connection to the target
 * @param retriesLeft how often the request may be sent again
 */
function dispatch(
  options: ForwardOptions,
  target: Target,
  connection: Connection,
  retriesLeft: number,
): void {
  const { request, fields, hasBody, maxBodyBytes, bodyIdleTimeoutMs } = options
  const body = hasBody
    ? new RequestBody(request, { maxBytes: maxBodyBytes, idleTimeoutMs: bodyIdleTimeoutMs })
    : null
  fields[1] = options.host ?? target.host
  const span = options.trace && beginAttemptSpan(options, target, retriesLeft)
  const handler = new ResponseRelay(options, target, retriesLeft, retry, body, span)
  const dispatchOptions = {
    origin: target.origin,
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: options.path,
    headers: fields,
    body,
    headersTimeout: options.responseTimeoutMs,
    upgrade: options.webSocket === undefined ? null : 'websocket',
    // Otherwise undici would use the Host header, whatever a route sets there.
    servername: target.serverName,
  }
  try {
    connection.dispatch(dispatchOptions, handler)
  } catch (error) {
    handler.onError(error as Error)
  }
}

function beginAttemptSpan(
  { trace, request, path, fields, upstream }: ForwardOptions,
  { origin }: Target,
  retriesLeft: number,
): AttemptSpan | undefined {
  const resendCount = upstream.retries - retriesLeft
  const span = trace?.begin({ method: request.method ?? '', origin, path, resendCount })
  if (span?.traceparent !== undefined) fields[3] = span.traceparent
  return span
}
