// Handles one request like a running gateway, but without the network. Uses the same gate and the same refusals.
import type { IncomingMessage } from 'node:http'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import type { Gate } from '../gate/gate.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import type { AnswerQuestion } from '../proxy/answer-question.ts'
import type { ForwardRequest } from '../proxy/forward-request.ts'
import { handleRequest, type ServeEndpoint } from '../proxy/handle-request.ts'
import { RequestContext, type RequestSnapshot } from '../proxy/request-context.ts'
import type { Language } from '../refusals/catalog.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { createStubResponse, type HeaderList, type ResponseHead } from './stub-request.ts'
import type { Dispatched } from './stub-upstreams.ts'

interface Options {
  gate: Gate
  forward: ForwardRequest
  answerQuestion: AnswerQuestion
  request: IncomingMessage
  head: RequestHead
  routing: RoutingDecision
  /** The same request with additional test headers. They show which headers the gateway removes. */
  probe: IncomingMessage
  /** The headers of the simulated upstream response. */
  upstreamHeaders: HeaderList
  /** `server.language`. */
  language: Language
  onDispatch(listener: (dispatched: Dispatched) => void): void
}

/** If `refusal` and `dispatched` are missing, a local endpoint would respond, or a question of a proxy is allowed. */
interface DryRun {
  readonly refusal?: Refusal
  readonly dispatched?: { readonly request: Dispatched; readonly probe: Dispatched }
  /** The response head for the client, without headers of a real upstream. Undefined if a local endpoint responds. */
  readonly head?: ResponseHead
}

export function dryRun(options: Options): Promise<DryRun> {
  const { gate, forward, answerQuestion, request, head, routing, probe, upstreamHeaders, language } = options
  return new Promise((resolve, reject) => {
    let result: DryRun = {}
    const response = createStubResponse(request, sent => resolve({ ...result, head: sent }))
    let probeDispatch: Dispatched | undefined
    options.onDispatch(dispatched => {
      if (probeDispatch === undefined) {
        probeDispatch = dispatched
        return
      }
      result = { dispatched: { request: dispatched, probe: probeDispatch } }
      const rawHeaders = upstreamHeaders.flat().map(text => Buffer.from(text, 'latin1'))
      dispatched.handler.onHeaders?.(200, rawHeaders, () => {}, 'OK')
      dispatched.handler.onComplete?.(null)
    })
    const contextWith = (received: IncomingMessage) =>
      new RequestContext(received, response, head, routing, snapshot, 'explained', performance.now())
    const snapshot: RequestSnapshot = {
      gate,
      forward(context, to, admission) {
        const trying = contextWith(probe)
        if (context.headers !== undefined) trying.addHeaders(context.headers)
        forward(trying, to, { ...admission, reservation: undefined })
        forward(context, to, admission)
      },
      answerQuestion,
      onRefusal(_, refusal) {
        // An internal error is a bug in the gateway, so it is reported as an error and not as the explanation.
        if (refusal.code === 'internal') reject(refusal.cause)
        result = { refusal }
      },
      accessEnded: async () => {},
      language,
      bodyIdleMs: 0,
      logOrigin: () => {},
      logRequest: undefined,
      acquire() {},
      release() {},
    }
    const serveEndpoint: ServeEndpoint = (context, endpoint) => {
      passGuards(context, endpoint).then(
        () => resolve({}),
        thrown => context.refuse(thrown),
      )
    }
    handleRequest(contextWith(request), serveEndpoint)
  })
}

async function passGuards(context: RequestContext, endpoint: LocalEndpoint): Promise<void> {
  if (endpoint.kind !== 'guarded') return
  const result = await context.snapshot.gate.endpointGuards(endpoint.accepts)(context)
  if (!result.allowed) throw result.thrown
}
