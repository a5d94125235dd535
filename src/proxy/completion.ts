// Completes every request: counts it and its bytes, writes its log line, ends its span, and releases its snapshot.
import type { Socket } from 'node:net'
import { authPrefix } from '../endpoints/auth.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import { releaseBodyless } from '../http/node-internals.ts'
import { responseClosed } from '../http/pipelining.ts'
import { namedKeyOf } from '../identity/identity.ts'
import type { Metrics } from '../observability/metrics/metrics.ts'
import type { RequestContext } from './request-context.ts'

/** Call this when the response owns the connection. The request is then completed when the response closes. */
export type CompleteAtClose = (context: RequestContext) => void

export function createCompletion({
  requests,
  counters,
}: Pick<Metrics, 'requests' | 'counters'>): CompleteAtClose {
  function complete(context: RequestContext): void {
    const { request, response, routing, snapshot, trace, question } = context
    const { decision = 'client_gone' } = context
    // If a forwarded request has no outcome, the client disconnected before the exchange with the upstream ended.
    const outcome = context.outcome ?? (decision === 'forwarded' ? 'client_gone' : undefined)
    const isQuestion = question !== undefined
    const method = isQuestion ? question.method : (request.method ?? '')
    const route = nameOf(routing)
    const status = response.headersSent ? response.statusCode : undefined
    const durationMs = performance.now() - context.startedAt
    requests.count({ method, route, status, durationMs, isQuestion })
    if (routing.kind === 'local' && routing.path.startsWith(authPaths)) {
      const came = decision === 'answered' ? 'success' : decision
      const { metricLabel } = routing.endpoint.operation
      counters.countAuth(metricLabel ?? routing.path.slice(authPaths.length), came)
    }
    snapshot.logRequest?.({
      requestId: context.requestId,
      isQuestion,
      trace,
      route,
      userId: context.identity.kind === 'user' ? context.identity.user.id : context.userId,
      keyId: namedKeyOf(context.identity)?.id,
      decision,
      reason: context.reason,
      outcome,
      method,
      url: context.url,
      status,
      bytesSent: context.bytesSent,
      client: context.head.client,
      host: context.head.host,
      upstreamTarget: context.upstreamTarget,
      upstreamDurationMs: context.upstreamDurationMs,
      durationMs,
    })
    // If the gateway allows the request that a proxy asks about, the proxy forwards the request to a service. The
    // service decides about the origin, so nothing is logged.
    if (request.headers.origin !== undefined && !(isQuestion && decision === 'answered')) {
      const { host } = context.head
      snapshot.logOrigin({ headers: request.headers, host, routing, decision: context.decision })
    }
    trace?.end({ status, decision, outcome })
    snapshot.release()
  }

  return context => {
    const { request, response, snapshot } = context
    const countsBytes = snapshot.logRequest !== undefined
    if (countsBytes) startCountingBytes(context, request.socket)
    // This is the only listener of `close`. It first notifies the code that waits for the upstream, because that code
    // sets the outcome.
    response.on('close', () => {
      context.waiter?.onClientGone()
      if (countsBytes) stopCountingBytes(context, request.socket)
      responseClosed(response)
      if (!context.head.hasBody) releaseBodyless(request)
      complete(context)
    })
  }
}

const authPaths = `${authPrefix}/`

function nameOf(routing: RoutingDecision): string | undefined {
  if (routing.kind === 'route' || routing.kind === 'question') return routing.route.name
  if (routing.kind === 'preflight') return routing.name
  return routing.kind === 'local' ? routing.path : undefined
}

const countedFor = Symbol('countedFor')
type Connection = Socket & { [countedFor]?: RequestContext | undefined }

/** From now on, all bytes written to the connection are counted, including the head and 1xx responses. */
function startCountingBytes(context: RequestContext, connection: Connection): void {
  connection[countedFor] = context
  context.bytesBefore = connection.bytesWritten
}

/** Stops counting. If the next pipelined response has already begun, its bytes are not counted for this response. */
function stopCountingBytes(context: RequestContext, connection: Connection): void {
  const last = connection[countedFor] ?? context
  const after = last === context ? connection.bytesWritten : last.bytesBefore
  context.bytesSent = after - context.bytesBefore
  // An idle connection must not keep its last request in memory.
  if (last === context) connection[countedFor] = undefined
}
