// Completes every request: counts it and its bytes, writes its log line, ends its span and releases its snapshot.
import type { Socket } from 'node:net'
import { authPrefix } from '../endpoints/auth.openapi.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import { responseClosed } from '../http/pipelining.ts'
import type { Metrics } from '../observability/metrics/metrics.ts'
import type { RequestContext } from './request-context.ts'

/** Call once per request, when its response closes. */
export type OnComplete = (context: RequestContext) => void

export function createCompletion({ requests, counters }: Pick<Metrics, 'requests' | 'counters'>): OnComplete {
  function end(context: RequestContext): void {
    const { request, response, routing, snapshot, trace } = context
    const { decision = 'client_gone' } = context
    // A forwarded exchange without an outcome outlived the client's connection: the client disconnected.
    const outcome = context.outcome ?? (decision === 'forwarded' ? 'client_gone' : undefined)
    const method = request.method ?? ''
    const route = nameOf(routing)
    const status = response.headersSent ? response.statusCode : undefined
    const durationMs = performance.now() - context.startedAt
    requests.count({ method, route, status, durationMs })
    if (routing.kind === 'local' && routing.path.startsWith(authPaths)) {
      const came = decision === 'answered' ? 'success' : decision
      counters.countAuth(routing.path.slice(authPaths.length), came)
    }
    snapshot.logRequest?.({
      requestId: context.requestId,
      trace,
      route,
      userId: context.identity.kind === 'user' ? context.identity.user.id : context.userId,
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
    if (request.headers.origin !== undefined) {
      const { host } = context.head
      snapshot.logOrigin({ headers: request.headers, host, routing, decision: context.decision })
    }
    trace?.end({ status, decision, outcome })
    snapshot.release()
  }

  return context => {
    if (context.snapshot.logRequest !== undefined) stopCountingBytes(context, context.request.socket)
    responseClosed(context.response)
    // The upstream exchange listens to the same `close` event and has yet to report its outcome.
    if (context.decision === 'forwarded' && context.outcome === undefined) process.nextTick(end, context)
    else end(context)
  }
}

const authPaths = `${authPrefix}/`

function nameOf(routing: RoutingDecision): string | undefined {
  if (routing.kind === 'route') return routing.route.name
  if (routing.kind === 'preflight') return routing.name
  return routing.kind === 'local' ? routing.path : undefined
}

const counted = Symbol('counted')
type Connection = Socket & { [counted]?: RequestContext | undefined }

/** Call when the request's response owns the connection: all that is written to it is counted, its head and 1xx too. */
export function startCountingBytes(context: RequestContext, connection: Connection): void {
  connection[counted] = context
  context.bytesBefore = connection.bytesWritten
}

/** By the time a response closes, the next pipelined one may have begun; its bytes are not counted. */
function stopCountingBytes(context: RequestContext, connection: Connection): void {
  const last = connection[counted] ?? context
  const after = last === context ? connection.bytesWritten : last.bytesBefore
  context.bytesSent = after - context.bytesBefore
  // An idle connection must not keep its last request in memory.
  if (last === context) connection[counted] = undefined
}
