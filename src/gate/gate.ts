// Builds the gate of a configuration. The gate parses a request, and finds the route of the request with its guards.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { parsePathPattern } from '../config/formats/path-pattern.ts'
import type { Plans } from '../config/plans.ts'
import { sharedTargets } from '../config/rules/declarations.ts'
import type { Config } from '../config/sections/schema.ts'
import type { FindLocalPath } from '../endpoints/endpoint-table.ts'
import type { AcceptedCallers } from '../endpoints/local-endpoint.ts'
import { createTrustedProxies, type TrustedProxies } from '../http/client-address.ts'
import type { GuardDecisions } from '../observability/metrics/counters.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { CreateRateLimiter } from '../storage/rate-limiter.ts'
import type { Upstreams } from '../upstream/targets/upstreams.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import type { ExhaustedQuotas } from '../usage/exhausted-quotas.ts'
import type { ExhaustedUsers } from '../usage/exhausted-users.ts'
import type { QuotaCounter } from '../usage/quota-count-store.ts'
import { type AuthenticationDependencies, createAuthenticate } from './guards/authenticate.ts'
import {
  compileEndpointGuards,
  compileGuards,
  type EndpointAdmission,
  type GuardChain,
} from './guards/chain.ts'
import { createCountDailyUse } from './guards/count-daily-use.ts'
import { createCountQuota } from './guards/count-quota.ts'
import { createRateLimit } from './guards/rate-limit.ts'
import { createQuestions, type Questions } from './parsing/question.ts'
import { parseRequestHead, type RequestHead, refuseMessage } from './parsing/request-head.ts'
import { createAllowAmbiguous } from './routing/allow-ambiguous-path.ts'
import { createCorsPolicies } from './routing/cors.ts'
import { createDecide, type Decide, type GuardedRoute } from './routing/decision.ts'
import { compileRoute } from './routing/route.ts'
import { createRouteTable } from './routing/route-table.ts'

export interface Gate {
  /** Parses a request of a client. */
  parse(request: IncomingMessage): RequestHead
  /** Undefined without `server.forward_auth`. */
  readonly parseQuestion: Questions['parse'] | undefined
  readonly decide: Decide
  /** Returns the guards of a local endpoint. */
  endpointGuards(accepted: AcceptedCallers): GuardChain<EndpointAdmission>
}

export interface GuardDependencies {
  readonly identity: AuthenticationDependencies
  /** Limiters with the same name share their counts across all replicas. */
  readonly createRateLimiter: CreateRateLimiter
  readonly counter: Pick<DailyCounter, 'use'>
  readonly exhausted: ExhaustedUsers
  readonly quotas: QuotaCounter
  readonly exhaustedQuotas: ExhaustedQuotas
}

interface Options {
  config: Pick<Config, 'server' | 'limits' | 'upstreams' | 'routes'>
  plans: Plans
  /** Finds the gateway's own endpoints, which have priority over the routes. */
  findLocalPath: FindLocalPath
  dependencies: GuardDependencies
  upstreams: Pick<Upstreams, 'get'>
  decisions: GuardDecisions
  clock: Clock
}

/**
 * The number of routes that a reload compiles without a pause, which takes about 20 ms. In each pause, waiting requests
 * are served. Afterwards, the tables are built without a pause, which takes about 60 ms for 10,000 routes.
 */
const routesPerTurn = 1_000

export async function createGate({
  config,
  plans,
  findLocalPath: findEndpoint,
  dependencies,
  upstreams,
  decisions,
  clock,
}: Options): Promise<Gate> {
  const { counter, exhausted, quotas, exhaustedQuotas } = dependencies
  const authenticate = createAuthenticate(dependencies.identity)
  const guardDependencies = {
    authenticate,
    limitRate: createRateLimit(dependencies.createRateLimiter, plans),
    countDailyUse: createCountDailyUse({ counter, spent: exhausted, limit: config.limits.free_daily, clock }),
    countQuota: createCountQuota({
      plans,
      counter: quotas,
      exhausted: exhaustedQuotas,
      now: () => performance.now(),
    }),
    decisions,
    plans,
  }
  const compiled: GuardedRoute[] = []
  for (const declared of config.routes) {
    const route = compileRoute(declared)
    const upstream = route.upstreamName === undefined ? undefined : upstreams.get(route.upstreamName)
    compiled.push({ ...route, upstream, ...compileGuards(route, upstream, guardDependencies) })
    if (compiled.length % routesPerTurn === 0) await setImmediate()
  }
  const routes = createRouteTable(compiled)
  const endpointGuards = new Map<string, GuardChain<EndpointAdmission>>()
  const { trusted_proxies, forward_auth } = config.server
  const findLocalPath = forward_auth === undefined ? findEndpoint : reserve(forward_auth.path, findEndpoint)
  const questions = forward_auth && createQuestions(forward_auth, trusted_proxies)
  return {
    parse: createParse(createTrustedProxies(trusted_proxies), questions),
    parseQuestion: questions?.parse,
    decide: createDecide({
      findLocalPath,
      routes,
      allowAmbiguous: createAllowAmbiguous({
        isOwn: segments => findLocalPath(segments) !== undefined,
        routes,
        isSameService: sharedTargets(
          new Map(
            Object.entries(config.upstreams).map(([name, { targets }]) => [
              name,
              targets.map(({ url }) => url),
            ]),
          ),
        ),
      }),
      policies: createCorsPolicies(config.server.cors, compiled),
    }),
    endpointGuards(accepted) {
      const name = JSON.stringify([accepted.keys, accepted.plans])
      const known = endpointGuards.get(name) ?? compileEndpointGuards(accepted, guardDependencies)
      endpointGuards.set(name, known)
      return known
    },
  }
}

/** Creates the parser for requests of clients. It refuses requests for the path at which proxies send questions. */
function createParse(proxies: TrustedProxies, questions: Questions | undefined): Gate['parse'] {
  if (questions === undefined) return request => parseRequestHead(request, proxies)
  const unknown = new Refusal('route_unknown')
  return request =>
    parseRequestHead(
      request,
      proxies,
      questions.isAtPath(request) ? (_, seen) => refuseMessage(request, seen) ?? unknown : undefined,
    )
}

/** Extends `find`: the returned function also reserves `path`, and all paths below `path`, for the gateway. */
function reserve(path: string, find: FindLocalPath): FindLocalPath {
  const reserved = parsePathPattern(path).segments
  const isReserved = (segments: readonly string[]) =>
    reserved.every((segment, index) => segment.kind === 'literal' && segment.value === segments[index])
  return segments => (isReserved(segments) ? 'unknown' : find(segments))
}
