// Explains how the gateway would handle a request. Uses the real gate with stubs for stores and network.
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import { type GuardName, isGuardActive } from '../config/active-guards.ts'
import { createPlans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import type { TestCase } from '../config/test-cases.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'
import type { Route } from '../gate/routing/route.ts'
import { createCounters, type GuardDecisions } from '../observability/metrics/counters.ts'
import { createAnswerQuestion } from '../proxy/answer-question.ts'
import { createForwardRequest } from '../proxy/forward-request.ts'
import type { Language } from '../refusals/catalog.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { weightsByUrl } from '../upstream/targets/load-balancer.ts'
import type { Plan } from '../users/user.ts'
import { dryRun } from './dry-run.ts'
import {
  addedHeaders,
  emptyDiff,
  type HeaderDiff,
  probeRequestHeaders,
  probeResponseHeaders,
  removedHeaders,
} from './header-diff.ts'
import { createStubRequest, type HeaderList, toHeaderList } from './stub-request.ts'
import { createStubUpstreams, type Dispatched } from './stub-upstreams.ts'
import {
  type Caller,
  type ExplainedKey,
  type ExplainedUser,
  stubAssertions,
  stubDependencies,
  stubEndpoints,
  stubKey,
  stubToken,
} from './stubs.ts'

export interface ExplainRequest {
  readonly method: string
  /** The request target, as in a request line. */
  readonly path: string
  readonly host: string
  /** The plan of a caller with a valid credential, or `anonymous` for a caller without credential. */
  readonly as: Plan | 'anonymous'
  /** The daily uses of the caller that are already counted today. */
  readonly usedToday: number
  /** The uses of the route's quota that are already counted in the current period. */
  readonly used: number
  readonly verified: boolean
  /** The API key of the caller. Undefined if the caller has an access token. */
  readonly key?: ExplainedKey
  /** The specific user who sends the request. With `split_by: user`, the id of this user selects the target. */
  readonly user?: ExplainedUser
}

export interface GuardOutcome {
  readonly guard: GuardName
  /** `skip` means that the guard has nothing to decide for this request, or that an earlier guard refused it. */
  readonly outcome: 'pass' | 'refuse' | 'skip'
  readonly status?: number
  /** The error code of the refusal. */
  readonly error?: string
}

export interface Explanation {
  readonly request: ExplainRequest
  readonly route: string | null
  /** The path of the local endpoint that serves the request. */
  readonly own: string | null
  /** The guards in the order in which they run. Empty if the request reaches no guard. */
  readonly guards: readonly GuardOutcome[]
  /** `null` if the request is allowed. */
  readonly refusal: RefusedWith | null
  /** The status of a refusal, or 200 for an allowed question of a proxy; `null` if an upstream or endpoint responds. */
  readonly status: number | null
  readonly upstream: ForwardedTo | null
  readonly headers: { readonly request: HeaderDiff; readonly response: HeaderDiff }
}

export interface RefusedWith {
  readonly status: number
  /** The value of `X-Peage-Error`. */
  readonly code: string
  /** The value of `error` in the body. */
  readonly sentence: string
}

export interface ForwardedTo {
  readonly name: string
  /**
   * The URL of the request at one target. With `split_by: user`, this is the target of the user. Otherwise, it is the
   * target with the greatest weight, or the first of several with this weight.
   */
  readonly url: string
  /** The URLs of the request at all targets that may receive it. */
  readonly urls: readonly string[]
}

export type Explain = (request: ExplainRequest) => Promise<Explanation>

/** Use the returned function for only one request at a time, because all requests share the stubs. */
export async function createExplain(config: Config, clock: Clock): Promise<Explain> {
  const caller: Caller = { plan: '', usedToday: 0, used: 0, verified: true, key: undefined, user: undefined }
  const plans = createPlans(config.plans)
  const findLocalPath = stubEndpoints(config, plans)
  const { guards: decisions } = createCounters()
  let onDispatch = (_: Dispatched): void => {}
  const upstreams = createStubUpstreams(config.upstreams, dispatched => onDispatch(dispatched))
  const forward = createForwardRequest(
    stubAssertions,
    { add: () => () => {} },
    { bodyIdleTimeoutMs: config.server.timeouts.body_idle, logoutEndsStreams: false },
  )
  const gate = await createGate({
    config,
    plans,
    findLocalPath,
    dependencies: stubDependencies(config.limits.free_daily, plans.names, caller, clock),
    upstreams,
    decisions,
    clock,
  })

  return async explainRequest => {
    const { as: plan, usedToday, used, verified, key, user } = explainRequest
    Object.assign(caller, { plan, usedToday, used, verified, key, user })
    for (const decided of Object.values(decisions)) Object.assign(decided, { pass: 0, refuse: 0, error: 0 })
    const requestHeaders = requestHeadersOf(explainRequest)
    const toRequest = (fields: HeaderList) =>
      createStubRequest({ ...explainRequest, fields, isEncrypted: config.server.tls !== undefined })
    const request = toRequest(requestHeaders)
    const parsed = gate.parse(request)
    const routing = decide(gate, request, parsed)
    const isQuestion = routing.kind === 'question'
    const route = isQuestion || routing.kind === 'route' ? routing.route : undefined
    const probeHeaders = route ? probeRequestHeaders(route, requestHeaders) : requestHeaders
    const upstreamHeaders = route ? probeResponseHeaders(route) : []
    const dryRunResult = await dryRun({
      gate,
      forward,
      answerQuestion: createAnswerQuestion(stubAssertions),
      request,
      head: parsed,
      routing,
      probe: toRequest(probeHeaders),
      upstreamHeaders,
      language: config.server.language,
      onDispatch(listener) {
        onDispatch = listener
      },
    })
    const { refusal, dispatched, head } = dryRunResult
    const receivedHeaders = dispatched ? upstreamHeaders : []
    return {
      request: explainRequest,
      route: route?.name ?? null,
      own: routing.kind === 'local' ? routing.path : null,
      guards: outcomesOf(decisions, refusal, route, explainRequest),
      refusal: refusal ? refusedWith(refusal, config.server.language) : null,
      status: refusal?.status ?? (isQuestion ? 200 : null),
      upstream:
        route?.upstreamName !== undefined && dispatched
          ? forwardedTo(config, route.upstreamName, dispatched.request)
          : null,
      headers: {
        request: dispatched
          ? {
              set: addedHeaders(requestHeaders, toHeaderList(dispatched.request.fields)),
              remove: removedHeaders(probeHeaders, toHeaderList(dispatched.probe.fields)),
            }
          : emptyDiff,
        response: head
          ? {
              set: addedHeaders(receivedHeaders, head.fields),
              remove: removedHeaders(receivedHeaders, head.fields),
            }
          : emptyDiff,
      },
    }
  }
}

/**
 * Decides like a running gateway. A route without upstream serves only questions of proxies, so a request for this
 * route is decided like a question.
 */
function decide(gate: Gate, request: IncomingMessage, head: RequestHead): RoutingDecision {
  const asQuestion = gate.decide(request, head, true)
  const route = 'route' in asQuestion ? asQuestion.route : undefined
  return route !== undefined && route.upstream === undefined ? asQuestion : gate.decide(request, head)
}

function requestHeadersOf({ host, as, key }: ExplainRequest): HeaderList {
  const fields: HeaderList = [['Host', host]]
  if (as === 'anonymous') return fields
  return [
    ...fields,
    key === undefined ? ['Authorization', `Bearer ${stubToken(as)}`] : ['X-API-Key', stubKey],
  ]
}

/** Derives the outcome of each guard from its counters. They contain only the decisions on this request. */
function outcomesOf(
  decisions: GuardDecisions,
  refusal: Refusal | undefined,
  route: Route | undefined,
  { key }: ExplainRequest,
): GuardOutcome[] {
  // The guards `scope`, `verified` and `quota` are listed only for routes that have them. For all other routes, the
  // list must stay as it was in version 0.1, because programs may depend on this list. For callers with an API key, the
  // guard `scope` is always listed, because it refuses keys with scopes on routes without a scope.
  const isHidden: Partial<Record<GuardName, boolean>> = {
    scope: key === undefined && !(route && isGuardActive.scope(route)),
    verified: route?.verified !== true,
    quota: route?.quota === undefined,
  }
  const all = (Object.entries(decisions) as [GuardName, GuardDecisions[GuardName]][]).filter(
    ([guard]) => !isHidden[guard],
  )
  if (all.every(([, { pass, refuse }]) => pass + refuse === 0)) return []
  return all.map(([guard, { pass, refuse }]) => {
    if (refuse > 0 && refusal)
      return { guard, outcome: 'refuse', status: refusal.status, error: refusal.code }
    return { guard, outcome: pass > 0 ? 'pass' : 'skip' }
  })
}

function refusedWith(refusal: Refusal, language: Language): RefusedWith {
  const { status, code } = refusal
  const { error } = JSON.parse(Buffer.from(refusal.response(language).body, 'latin1').toString())
  return { status, code, sentence: error }
}

function forwardedTo(config: Config, name: string, { origin, path }: Dispatched): ForwardedTo {
  const { targets = [], split_by } = config.upstreams[name] ?? {}
  const inTurn = [...weightsByUrl({ targets })].filter(([, weight]) => weight > 0).map(([url]) => url)
  // With `split_by: user`, only the target of this user can receive the request. Otherwise, the targets whose weight is
  // not 0 receive requests in turn.
  const origins = split_by === 'user' ? [origin] : inTurn
  return { name, url: origin + path, urls: origins.map(one => one + path) }
}

/** The request of a test case, without the expectations. It may also name a specific user. */
type Question = Omit<TestCase, 'expect'> & Pick<ExplainRequest, 'user'>

/** Converts the request of a test case. Without `host`, the host is derived from the path. */
export function toExplainRequest({
  request: { method, path },
  host = authorityHost(path),
  as,
  user,
}: Question): ExplainRequest {
  const caller: Exclude<Question['as'], string> = typeof as === 'string' ? { plan: as } : as
  const { plan, used_today: usedToday = 0, used = 0, verified = true, scopes } = caller
  const key = scopes !== undefined || caller.key ? { scopes: scopes ?? null } : undefined
  return {
    method,
    path,
    host,
    as: plan,
    usedToday,
    used,
    verified,
    ...(key && { key }),
    ...(user && { user }),
  }
}

/** Returns the `Host` of a client. For an absolute-form target, it is the authority of the target (RFC 9112 §3.2.2). */
function authorityHost(path: string): string {
  return path.startsWith('/') ? 'localhost' : (/^[a-z]+:\/\/([^/?#]*)/i.exec(path)?.[1] ?? '')
}

/** Returns the explanation as JSON, for `peage explain --json` and the admin API. */
export function toDocument({ request, route, guards, status, upstream, headers }: Explanation) {
  const { method, path, as } = request
  return {
    request: { method, path, as },
    route,
    guards,
    status,
    upstream: upstream && { name: upstream.name, url: upstream.url },
    headers,
  }
}
