// The gate of one configuration: whatever its guards ask is handed in, stores or what stands in for them.

import { atOnce, mapSteps, type Steps } from '../async/steps.ts'
import type { Clock } from '../clock.ts'
import { sharedTargets } from '../config/rules/shared-targets.ts'
import type { Config } from '../config/schema/schema.ts'
import type { GuardDecisions } from '../observability/metrics/counters.ts'
import type { CreateLimiter } from '../storage/rate-limiter.ts'
import type { Upstreams } from '../upstream/targets/upstreams.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import type { SpentUsers } from '../usage/exhausted-users.ts'
import { type AskedForIdentity, createAuthenticate } from './guards/authenticate.ts'
import { createGuards, createOwnGuards, type Guards, type OwnGuards } from './guards/chain.ts'
import { createCountDailyUse } from './guards/count-daily-use.ts'
import { limitRateSteps } from './guards/rate-limit.ts'
import { createTrustedProxies } from './parsing/client-address.ts'
import { type Arrivals, createArrivals, type FindOwn } from './parsing/request-head.ts'
import { createAllowInPath } from './routing/allow-ambiguous-path.ts'
import { corsSteps } from './routing/cors.ts'
import { compileRoute } from './routing/route.ts'
import { routeTableSteps } from './routing/route-table.ts'

export interface Gate {
  readonly arrivals: Arrivals
  readonly guards: Guards
  readonly ownGuards: OwnGuards
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
  findOwn: FindOwn
  asked: Asked
  upstreams: Pick<Upstreams, 'get'>
  /** Where the guards' decisions are counted. */
  decisions: GuardDecisions
  clock: Clock
  /** See `createArrivals`. */
  onUntrustedForwarder(peer: string): void
  newRequestId(): string
}

export function createGate(parts: Parts): Gate {
  return atOnce(gateSteps(parts))
}

/** Nothing is in force before the last step. */
export function* gateSteps(parts: Parts): Steps<Gate> {
  const { config, findOwn, asked, upstreams, decisions, clock } = parts
  const compiled = yield* mapSteps(config.routes, compileRoute)
  const routes = yield* routeTableSteps(compiled)
  const authenticate = createAuthenticate(asked.identity)
  const { free_daily: limit } = config.limits
  const { counter, spent } = asked
  return {
    arrivals: createArrivals({
      findOwn,
      routes,
      allowInPath: createAllowInPath({
        isOwn: segments => findOwn(segments) !== undefined,
        routes,
        isSameService: sharedTargets(
          new Map(Object.entries(config.upstreams).map(([name, { targets }]) => [name, targets])),
        ),
      }),
      cors: yield* corsSteps(config.server.cors, compiled),
      proxies: createTrustedProxies(config.server.trusted_proxies),
      onUntrustedForwarder: parts.onUntrustedForwarder,
      newRequestId: parts.newRequestId,
    }),
    guards: createGuards({
      upstreams,
      authenticate,
      limitRate: yield* limitRateSteps(compiled, asked.createLimiter),
      countDailyUse: createCountDailyUse({ counter, spent, limit, clock }),
      decisions,
    }),
    ownGuards: createOwnGuards(authenticate, decisions),
  }
}
