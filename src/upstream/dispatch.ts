// Sends one request to one target, within the span of this attempt.
import type { Dispatcher } from 'undici'
import { RequestBody } from '../http/request-body.ts'
import type { AttemptSpan } from '../observability/tracing/tracing.ts'
import type { ForwardOptions, Retry } from './forward-options.ts'
import { ResponseRelay } from './response-relay.ts'
import type { Connection } from './targets/connection.ts'
import type { Target } from './targets/target.ts'

/**
 * Reports the outcome to the observer, or calls `retry`.
 * @param connection to the target
 * @param retriesLeft how often the request may be sent again
 */
export function dispatch(
  options: ForwardOptions,
  target: Target,
  connection: Connection,
  retriesLeft: number,
  retry: Retry,
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
