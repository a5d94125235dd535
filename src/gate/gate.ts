// Builds the gate of one configuration, which parses requests and finds their route and its compiled guards.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { sharedTargets } from '../config/rules/declarations.ts'
import type { Config } from '../config/sections/schema.ts'
import type { FindLocalPath } from '../endpoints/endpoint-table.ts'
import { createTrustedProxies } from '../http/client-address.ts'
import type { GuardDecisions } from '../observability/metrics/counters.ts'
import type { CreateRateLimiter } from '../storage/rate-limiter.ts'
import type { Upstreams } from '../upstream/targets/upstreams.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import type { ExhaustedUsers } from '../usage/exhausted-users.ts'
import type { Plan } from '../users/user.ts'
import { type AuthenticationDependencies, createAuthenticate } from './guards/authenticate.ts'
import {
  compileEndpointGuards,
  compileGuards,
  type EndpointAdmission,
  type GuardChain,
} from './guards/chain.ts'
import { createCountDailyUse } from './guards/count-daily-use.ts'
import { createRateLimit } from './guards/rate-limit.ts'
import { parseRequestHead, type RequestHead } from './parsing/request-head.ts'
import { createAllowAmbiguous } from './routing/allow-ambiguous-path.ts'
import { createCorsPolicies } from './routing/cors.ts'
import { createDecide, type Decide, type GuardedRoute } from './routing/decision.ts'
import { compileRoute } from './routing/route.ts'
import { createRouteTable } from './routing/route-table.ts'

export interface Gate {
  parse(request: IncomingMessage): RequestHead
  readonly decide: Decide
  /** Returns the guards of a local endpoint. @param plans the allowed plans; `undefined` for every plan */
  endpointGuards(plans: readonly Plan[] | undefined): GuardChain<EndpointAdmission>
}

export interface GuardDependencies {
  readonly identity: AuthenticationDependencies
  /** Limiters with the same name share their counts across all replicas. */
  readonly createRateLimiter: CreateRateLimiter
  readonly counter: Pick<DailyCounter, 'use'>
  readonly exhausted: ExhaustedUsers
}

interface Options {
  config: Pick<Config, 'server' | 'limits' | 'upstreams' | 'routes'>
  /** Finds the gateway's own endpoints, which have priority over the routes. */
  findLocalPath: FindLocalPath
  dependencies: GuardDependencies
  upstreams: Pick<Upstreams, 'get'>
  decisions: GuardDecisions
  clock: Clock
}

/**
 * The number of routes that a reload compiles in one turn, which takes about 20 ms. After each turn, waiting requests
 * are served. When all routes are compiled, the tables are built in a single turn, which takes about 60 ms for 10,000
 * routes.
 */
const routesPerTurn = 1_000

export async function createGate({
  config,
  findLocalPath,
  dependencies,
  upstreams,
  decisions,
  clock,
}: Options): Promise<Gate> {
  const { counter, exhausted } = dependencies
  const authenticate = createAuthenticate(dependencies.identity)
  const guardDependencies = {
    authenticate,
    limitRate: createRateLimit(dependencies.createRateLimiter),
    countDailyUse: createCountDailyUse({ counter, spent: exhausted, limit: config.limits.free_daily, clock }),
    decisions,
  }
  const compiled: GuardedRoute[] = []
  for (const declared of config.routes) {
    const route = compileRoute(declared)
    const upstream = upstreams.get(route.upstreamName)
    compiled.push({ ...route, upstream, guards: compileGuards(route, upstream, guardDependencies) })
    if (compiled.length % routesPerTurn === 0) await setImmediate()
  }
  const routes = createRouteTable(compiled)
  const endpointGuards = new Map<string, GuardChain<EndpointAdmission>>()
  const proxies = createTrustedProxies(config.server.trusted_proxies)
  return {
    parse: request => parseRequestHead(request, proxies),
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
    endpointGuards(plans) {
      const name = String(plans)
      const known = endpointGuards.get(name) ?? compileEndpointGuards(plans, guardDependencies)
      endpointGuards.set(name, known)
      return known
    },
  }
}
