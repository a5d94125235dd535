// Sends one request to one target, in the span of this try.
import type { Dispatcher } from 'undici'
import { RequestBody } from '../http/request-body.ts'
import type { TrySpan } from '../observability/tracing/tracing.ts'
import type { Forwarding } from './forward-options.ts'
import { type Again, Exchange } from './response-relay.ts'
import type { Connection } from './targets/connection.ts'
import type { Target } from './targets/target.ts'

/**
 * Tells the observer how it ended, or calls `again`.
 * @param connection to the target
 * @param retries how often it may be sent again
 */
export function dispatch(
  forwarding: Forwarding,
  target: Target,
  connection: Connection,
  retries: number,
  again: Again,
): void {
  const { request, fields, hasBody, maxBody, bodyIdle } = forwarding
  const body = hasBody ? new RequestBody(request, { maxBytes: maxBody, idle: bodyIdle }) : null
  fields[1] = forwarding.host ?? target.host
  const span = forwarding.trace && beginSpan(forwarding, target, retries)
  const handler = new Exchange(forwarding, target, retries, again, body, span)
  const options = {
    origin: target.origin,
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: forwarding.path,
    headers: fields,
    body,
    headersTimeout: forwarding.responseTimeout,
    upgrade: forwarding.webSocket === undefined ? null : 'websocket',
    // Else undici would take the Host field for it, whatever a route sets there.
    servername: target.serverName,
  }
  try {
    connection.dispatch(options, handler)
  } catch (error) {
    handler.onError(error as Error)
  }
}

function beginSpan(
  { trace, request, path, fields, upstream }: Forwarding,
  { origin }: Target,
  retries: number,
): TrySpan | undefined {
  const resent = upstream.retries - retries
  const span = trace?.begin({ method: request.method ?? '', origin, path, resent })
  if (span?.traceparent !== undefined) fields[3] = span.traceparent
  return span
}
