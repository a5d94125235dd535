// The gate of one configuration: parses a request, finds its route, and has the guards compiled into each route.
import type { IncomingMessage } from 'node:http'
import { atOnce, mapSteps, type Steps } from '../async/steps.ts'
import type { Clock } from '../clock.ts'
import { sharedTargets } from '../config/rules/shared-targets.ts'
import type { Config } from '../config/schema/schema.ts'
import type { KnownUser } from '../identity/identity.ts'
import type { GuardDecisions } from '../observability/metrics/counters.ts'
import type { CreateLimiter } from '../storage/rate-limiter.ts'
import type { Upstreams } from '../upstream/targets/upstreams.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import type { SpentUsers } from '../usage/exhausted-users.ts'
import type { Plan } from '../users/user.ts'
import type { GuardedRoute } from './guarded-route.ts'
import { type AskedForIdentity, createAuthenticate } from './guards/authenticate.ts'
import { compileEndpointGuards, compileGuards, type GuardChain } from './guards/chain.ts'
import { createCountDailyUse } from './guards/count-daily-use.ts'
import { createLimitRate } from './guards/rate-limit.ts'
import { createTrustedProxies } from './parsing/client-address.ts'
import { parseRequestHead, type RequestHead } from './parsing/request-head.ts'
import { createAllowInPath } from './routing/allow-ambiguous-path.ts'
import { corsSteps } from './routing/cors.ts'
import { createDecide, type Decide, type FindLocalEndpoint } from './routing/decision.ts'
import { compileRoute } from './routing/route.ts'
import { routeTableSteps } from './routing/route-table.ts'

export interface Gate {
  parse(request: IncomingMessage): RequestHead
  readonly decide: Decide
  /** For an endpoint of the gateway's own. @param plans nothing for every plan */
  endpointGuards(plans: readonly Plan[] | undefined): GuardChain<KnownUser>
}

/** What the configuration alone cannot answer. */
export interface Asked {
  readonly identity: AskedForIdentity
  /** Of one name, the same for all replicas. */
  readonly createLimiter: CreateLimiter
  readonly counter: Pick<DailyCounter, 'use'>
  readonly spent: SpentUsers
}

interface Parts {
  config: Pick<Config, 'server' | 'limits' | 'upstreams' | 'routes'>
  /** The gateway's own endpoints: they come before every route. */
  findLocalEndpoint: FindLocalEndpoint
  asked: Asked
  upstreams: Pick<Upstreams, 'get'>
  /** Where the guards' decisions are counted. */
  decisions: GuardDecisions
  clock: Clock
}

export function createGate(parts: Parts): Gate {
  return atOnce(gateSteps(parts))
}

/** Nothing is in force before the last step. */
export function* gateSteps(parts: Parts): Steps<Gate> {
  const { config, findLocalEndpoint, asked, upstreams, decisions, clock } = parts
  const { counter, spent } = asked
  const authenticate = createAuthenticate(asked.identity)
  const guardDependencies = {
    authenticate,
    limitRate: createLimitRate(asked.createLimiter),
    countDailyUse: createCountDailyUse({ counter, spent, limit: config.limits.free_daily, clock }),
    decisions,
  }
  const compiled = yield* mapSteps(config.routes, (declared): GuardedRoute => {
    const route = compileRoute(declared)
    const upstream = upstreams.get(route.upstreamName)
    return { ...route, upstream, guards: compileGuards(route, upstream, guardDependencies) }
  })
  const routes = yield* routeTableSteps(compiled)
  const endpointGuards = new Map<string, GuardChain<KnownUser>>()
  const proxies = createTrustedProxies(config.server.trusted_proxies)
  return {
    parse: request => parseRequestHead(request, proxies),
    decide: createDecide({
      findLocalEndpoint,
      routes,
      allowInPath: createAllowInPath({
        isOwn: segments => findLocalEndpoint(segments) !== undefined,
        routes,
        isSameService: sharedTargets(
          new Map(Object.entries(config.upstreams).map(([name, { targets }]) => [name, targets])),
        ),
      }),
      policies: yield* corsSteps(config.server.cors, compiled),
    }),
    endpointGuards(plans) {
      const name = String(plans)
      const known = endpointGuards.get(name) ?? compileEndpointGuards(plans, guardDependencies)
      endpointGuards.set(name, known)
      return known
    },
  }
}
