// Explains how the gateway would handle a request. Uses the real gate with stubs for stores and network.
import type { Clock } from '../clock.ts'
import type { GuardName } from '../config/active-guards.ts'
import type { Config } from '../config/sections/schema.ts'
import type { TestCase } from '../config/test-cases.ts'
import { createGate } from '../gate/gate.ts'
import { createCounters, type GuardDecisions } from '../observability/metrics/counters.ts'
import { createForwardRequest } from '../proxy/forward-request.ts'
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
import { type Caller, stubAssertions, stubDependencies, stubEndpoints, stubToken } from './stubs.ts'

export interface ExplainRequest {
  readonly method: string
  /** The request target, as in a request line. */
  readonly path: string
  readonly host: string
  /** The plan of the caller, who has a valid access token. An `anonymous` caller has no token. */
  readonly as: Plan | 'anonymous'
  /** The uses already counted today. */
  readonly usedToday: number
  readonly verified: boolean
  /** The specific user who sends the request. With `split_by: user`, the id of this user selects the target. */
  readonly user?: ExplainedUser
}

export interface ExplainedUser {
  readonly id: number
  readonly isActive: boolean
}

export interface GuardOutcome {
  readonly guard: GuardName
  /** `skip` means that the guard has nothing to decide here, or that an earlier guard refused. */
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
  /** `null` if the request goes to an upstream or to a local endpoint. */
  readonly refusal: RefusedWith | null
  readonly upstream: ForwardedTo | null
  readonly headers: { readonly request: HeaderDiff; readonly response: HeaderDiff }
}

export interface RefusedWith {
  readonly status: number
  /** The value of `X-Peage-Error`. */
  readonly code: string
  /** The body's `error`. */
  readonly sentence: string
}

export interface ForwardedTo {
  readonly name: string
  /**
   * The URL of the request at the target with the most weight. If several targets have this weight, the first of them
   * is used.
   */
  readonly url: string
  /** One URL for each target that receives requests. */
  readonly urls: readonly string[]
}

export type Explain = (request: ExplainRequest) => Promise<Explanation>

/** Use the returned function for only one request at a time, because all requests share the stubs. */
export async function createExplain(config: Config, clock: Clock): Promise<Explain> {
  const caller: Caller = { usedToday: 0, verified: true, user: undefined }
  const findLocalPath = stubEndpoints(config)
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
    findLocalPath,
    dependencies: stubDependencies(config.limits.free_daily, caller, clock),
    upstreams,
    decisions,
    clock,
  })

  return async explainRequest => {
    const { usedToday, verified, user } = explainRequest
    Object.assign(caller, { usedToday, verified, user })
    for (const decided of Object.values(decisions)) Object.assign(decided, { pass: 0, refuse: 0, error: 0 })
    const requestHeaders = requestHeadersOf(explainRequest)
    const toRequest = (fields: HeaderList) =>
      createStubRequest({ ...explainRequest, fields, isEncrypted: config.server.tls !== undefined })
    const request = toRequest(requestHeaders)
    const parsed = gate.parse(request)
    const routing = gate.decide(request, parsed)
    const route = routing.kind === 'route' ? routing.route : undefined
    const probeHeaders = route ? probeRequestHeaders(route, requestHeaders) : requestHeaders
    const upstreamHeaders = route ? probeResponseHeaders(route) : []
    const dryRunResult = await dryRun({
      gate,
      forward,
      request,
      head: parsed,
      routing,
      probe: toRequest(probeHeaders),
      upstreamHeaders,
      onDispatch(listener) {
        onDispatch = listener
      },
    })
    const { refusal, dispatched, head } = dryRunResult
    const receivedHeaders = refusal ? [] : upstreamHeaders
    return {
      request: explainRequest,
      route: route?.name ?? null,
      own: routing.kind === 'local' ? routing.path : null,
      guards: outcomesOf(decisions, refusal, route?.verified === true),
      refusal: refusal ? refusedWith(refusal) : null,
      upstream: route && dispatched ? forwardedTo(config, route.upstreamName, dispatched.request) : null,
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

function requestHeadersOf({ host, as }: ExplainRequest): HeaderList {
  const fields: HeaderList = [['Host', host]]
  return as === 'anonymous' ? fields : [...fields, ['Authorization', `Bearer ${stubToken(as)}`]]
}

/**
 * Derives the outcome of each guard from its counters. A refused request was refused by the last guard that made a
 * decision.
 */
function outcomesOf(
  decisions: GuardDecisions,
  refusal: Refusal | undefined,
  showsVerified: boolean,
): GuardOutcome[] {
  // The guard `verified` is listed only for routes with `verified: true`. For all other routes, the list must stay as
  // it was in version 0.1, because programs may depend on this list.
  const all = (Object.entries(decisions) as [GuardName, GuardDecisions[GuardName]][]).filter(
    ([guard]) => guard !== 'verified' || showsVerified,
  )
  if (all.every(([, { pass, refuse }]) => pass + refuse === 0)) return []
  return all.map(([guard, { pass, refuse }]) => {
    if (refuse > 0 && refusal)
      return { guard, outcome: 'refuse', status: refusal.status, error: refusal.code }
    return { guard, outcome: pass > 0 ? 'pass' : 'skip' }
  })
}

function refusedWith({ status, code, response }: Refusal): RefusedWith {
  const { error } = JSON.parse(Buffer.from(response.body, 'latin1').toString())
  return { status, code, sentence: error }
}

function forwardedTo(config: Config, name: string, { origin, path }: Dispatched): ForwardedTo {
  const { targets = [], split_by } = config.upstreams[name] ?? {}
  const inTurn = [...weightsByUrl({ targets })].filter(([, weight]) => weight > 0).map(([url]) => url)
  // With `split_by: user`, only the user's own target receives the request. Otherwise all targets with a weight receive
  // requests in turn.
  const origins = split_by === 'user' ? [origin] : inTurn
  return { name, url: origin + path, urls: origins.map(one => one + path) }
}

/** The request of a test case, without the expectations. It may also name a specific user. */
type Question = Omit<TestCase, 'expect'> & Pick<ExplainRequest, 'user'>

/** Without `host`, the host is derived from the path. */
export function toExplainRequest({
  request: { method, path },
  host = authorityHost(path),
  as,
  user,
}: Question): ExplainRequest {
  const { plan, used_today: usedToday = 0, verified = true } = typeof as === 'string' ? { plan: as } : as
  return { method, path, host, as: plan, usedToday, verified, ...(user && { user }) }
}

/** A client that sends an absolute-form target repeats the target's authority in `Host` (RFC 9112 §3.2.2). */
function authorityHost(path: string): string {
  return path.startsWith('/') ? 'localhost' : (/^[a-z]+:\/\/([^/?#]*)/i.exec(path)?.[1] ?? '')
}

/** Returns the explanation as JSON, for `peage explain --json` and the admin API. */
export function toDocument({ request, route, guards, refusal, upstream, headers }: Explanation) {
  const { method, path, as } = request
  return {
    request: { method, path, as },
    route,
    guards,
    status: refusal?.status ?? null,
    upstream: upstream && { name: upstream.name, url: upstream.url },
    headers,
  }
}
