// Compiles the guards of a route, in their order, when the configuration is loaded.
import { type GuardName, isGuardActive } from '../../config/active-guards.ts'
import { allowedPlans, type Plans } from '../../config/plans.ts'
import type { AcceptedCallers } from '../../endpoints/local-endpoint.ts'
import type { AuthenticatedUser, Identity } from '../../identity/identity.ts'
import type { GuardDecisions } from '../../observability/metrics/counters.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Route } from '../routing/route.ts'
import { type Admission, admitUncounted } from './admission.ts'
import type { Authenticate } from './authenticate.ts'
import { availableTarget, type CheckedUpstream, type TargetAvailable } from './available-target.ts'
import type { CountDailyUse } from './count-daily-use.ts'
import type { CountQuota } from './count-quota.ts'
import { andThen, type Guard, type GuardedRequest, recorded } from './guard.ts'
import { limitBody } from './limit-body.ts'
import type { RateLimit, WithinLimit } from './rate-limit.ts'
import { type PlanAllowed, requirePlan } from './require-plan.ts'
import { checkKeyForEndpoint, checkKeyForRoute, requireScope, type ScopeAllowed } from './require-scope.ts'
import { type EmailVerified, requireVerified } from './require-verified.ts'

/** The result if a guard refused or failed. `thrown` is a Refusal, ClientDisconnected, or an error of a store. */
interface NotAdmitted {
  readonly allowed: false
  readonly thrown: unknown
}

export interface EndpointAdmission {
  readonly allowed: true
  readonly identity: AuthenticatedUser
}

export type ChainResult<Allowed = Admission> = Allowed | NotAdmitted

/**
 * Runs the guards of a request, before its body is read. Never throws. A refused request costs no use, because uses are
 * counted last.
 */
export type GuardChain<Allowed = Admission> = (
  request: GuardedRequest,
) => ChainResult<Allowed> | Promise<ChainResult<Allowed>>

interface Dependencies {
  authenticate: Authenticate
  limitRate: RateLimit
  countDailyUse: CountDailyUse
  countQuota: CountQuota
  decisions: GuardDecisions
  plans: Plans
}

/** The two guard chains of a route. A guard that is in both chains has one state, so limits and counts are shared. */
export interface RouteGuards {
  /** The guards of a request that the gateway forwards. Undefined if the route has no upstream. */
  readonly guards: GuardChain | undefined
  /** The guards for questions of proxies, without `max_body` and `target`, because the proxy forwards the request. */
  readonly questionGuards: GuardChain
}

/**
 * Compiles only the guards that the route configures, so that the other guards cost nothing. Every route with
 * authentication gets the guard `scope`. On a route without a scope, this guard refuses API keys with scopes.
 */
export function compileGuards(
  route: Route,
  upstream: CheckedUpstream | undefined,
  dependencies: Dependencies,
): RouteGuards {
  const { authenticate, limitRate, countDailyUse, countQuota, decisions, plans } = dependencies
  const ifActive = <In, Out>(name: GuardName, compile: () => Guard<In, Out>): Guard<In, Out> | undefined =>
    isGuardActive[name](route, plans) ? recorded(name, decisions[name], compile()) : undefined

  const authentication = ifActive('authenticate', () => authenticate(route.auth)) ?? authenticate('none')
  const rateLimit = ifActive('rate_limit', () => limitRate(route))
  const scope = route.auth === 'none' ? undefined : requireScope(checkKeyForRoute(route), decisions.scope)
  const plan = ifActive('plan', () => requirePlan(allowedPlans(plans, route)))
  const verified = ifActive('verified', () => requireVerified())
  const maxBody = ifActive('max_body', () => limitBody(route.max_body))
  const target = upstream && recorded('target', decisions.target, availableTarget(upstream))
  // A route has at most one of the guards `free_daily` and `quota`.
  const admission =
    ifActive('free_daily', () => countDailyUse) ??
    (route.quota && recorded('quota', decisions.quota, countQuota(route.quota))) ??
    admitUncounted

  const limited = andThen(authentication, rateLimit)
  const scoped = andThen(limited, scope)
  const allowed = andThen(andThen(scoped, plan), verified)
  const uncheckedTarget = andThen<void, EmailVerified, TargetAvailable>(allowed, undefined)
  return {
    guards: target && neverThrowing(andThen(andThen(andThen(allowed, maxBody), target), admission)),
    questionGuards: neverThrowing(andThen(uncheckedTarget, admission)),
  }
}

/** Compiles the guards of a local endpoint: authentication, scope and plan. */
export function compileEndpointGuards(
  { keys, plans }: AcceptedCallers,
  { authenticate, decisions }: Pick<Dependencies, 'authenticate' | 'decisions'>,
): GuardChain<EndpointAdmission> {
  const authenticated = recorded('authenticate', decisions.authenticate, authenticate('required'))
  // Local endpoints have no rate-limit guard.
  const limited = andThen<void, Identity, WithinLimit>(authenticated, undefined)
  const scoped = andThen(limited, requireScope(checkKeyForEndpoint(keys), decisions.scope))
  const plan: Guard<ScopeAllowed, PlanAllowed> | undefined =
    plans && recorded('plan', decisions.plan, requirePlan(plans))
  const admission: Guard<PlanAllowed, EndpointAdmission> = (_, identity) => {
    // The authentication is `required`, so every admitted request has a user.
    return { allowed: true, identity: identity as Identity as AuthenticatedUser }
  }
  return neverThrowing(andThen(andThen(scoped, plan), admission))
}

function neverThrowing<Allowed extends object>(guard: Guard<void, Allowed>): GuardChain<Allowed> {
  const refused = (thrown: unknown) => ({ allowed: false, thrown }) as const
  const conclude = (request: GuardedRequest, result: Allowed | Refusal): ChainResult<Allowed> => {
    if (result instanceof Refusal) return refused(result)
    request.trace?.onGuard(undefined)
    return result
  }
  return request => {
    try {
      const result = guard(request)
      return result instanceof Promise
        ? result.then(settled => conclude(request, settled), refused)
        : conclude(request, result)
    } catch (thrown) {
      return refused(thrown)
    }
  }
}
