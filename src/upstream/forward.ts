// Forwards one request and streams its response back, with back-pressure both ways and no body buffered whole.
import type { Dispatcher } from 'undici'
import { RequestBody } from '../http/request-body.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'
import type { ForwardOptions, TakenConnection } from './forward-options.ts'
import { ResponseRelay } from './response-relay.ts'
import type { Connection } from './targets/connection.ts'
import { EndpointRetired, type Wait } from './targets/connection-pool.ts'
import type { Endpoint } from './targets/endpoint.ts'

/** Once a response has begun, a failure breaks the client's connection: half a response never looks complete. */
export function forward(options: ForwardOptions): void {
  const { taken } = options
  if (taken === undefined) attempt(options, noneTried)
  else send(options, taken, noneTried)
}

const noneTried: readonly Endpoint[] = []

/** @param tried endpoints that have failed it: as many as it was sent before */
function attempt(options: ForwardOptions, tried: readonly Endpoint[]): void {
  let taken: TakenConnection | Promise<TakenConnection>
  try {
    taken = takeConnection(options, tried, waitOf(options))
  } catch (refusal) {
    options.observer.onRefused(refusal)
    return
  }
  if (!(taken instanceof Promise)) send(options, taken, tried)
  else {
    taken.then(
      freed => send(options, freed, tried),
      thrown => options.observer.onRefused(thrown),
    )
  }
}

/**
 * Picks an endpoint and takes a connection to it. The caller sends a request on it, or releases it.
 * @param tried endpoints to avoid
 * @param wait for a free connection, if not as usual
 * @throws Refusal 503 `upstream_unavailable` if there is none; what `wait` says if none becomes free in time
 * @throws ClientDisconnected if the client leaves meanwhile
 */
export function takeConnection(
  options: Pick<ForwardOptions, 'upstream' | 'splitKey' | 'response'>,
  tried: readonly Endpoint[] = noneTried,
  wait?: Wait,
): TakenConnection | Promise<TakenConnection> {
  const endpoint = options.upstream.pickEndpoint(options.splitKey, tried)
  if (endpoint === undefined) throw new Refusal('upstream_unavailable')
  const connection = endpoint.pool.tryAcquire()
  if (connection !== undefined) return { endpoint, connection }
  return endpoint.pool.acquire(options.response, wait).then(
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
): void {
  // A response emits `close` only once, and this one has: a request dispatched now would never be aborted.
  if (options.response.destroyed) {
    connection.release()
    options.observer.onRefused(new ClientDisconnected())
  } else dispatch(options, endpoint, tried, connection)
}

/**
 * Sends the request to one endpoint, within the span of this attempt. The relay reports to the observer, or retries.
 * @param tried endpoints that have failed it
 * @param connection to the endpoint
 */
function dispatch(
  options: ForwardOptions,
  endpoint: Endpoint,
  tried: readonly Endpoint[],
  connection: Connection,
): void {
  const { request, upstream, fields, hasBody, maxBodyBytes, bodyIdleTimeoutMs } = options
  const body = hasBody
    ? new RequestBody(request, { maxBytes: maxBodyBytes, idleTimeoutMs: bodyIdleTimeoutMs })
    : null
  fields[1] = options.host ?? endpoint.host
  const span = options.trace && beginAttemptSpan(options, endpoint, tried.length)
  const retry = tried.length < upstream.retries ? () => attempt(options, [...tried, endpoint]) : undefined
  const handler = new ResponseRelay(options, endpoint, retry, body, span)
  const dispatchOptions = {
    origin: endpoint.origin,
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: options.path,
    headers: fields,
    body,
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

function beginAttemptSpan(
  { trace, request, path, fields }: ForwardOptions,
  { origin }: Endpoint,
  resendCount: number,
): AttemptSpan | undefined {
  const span = trace?.begin({ method: request.method ?? '', origin, path, resendCount })
  if (span?.traceparent !== undefined) fields[3] = span.traceparent
  return span
}
