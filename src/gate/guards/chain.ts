// Compiles the guards of a route, in their order, when the configuration is loaded.
import { type GuardName, isGuardActive } from '../../config/active-guards.ts'
import type { AuthenticatedUser, Identity } from '../../identity/identity.ts'
import type { GuardDecisions } from '../../observability/metrics/counters.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Plan } from '../../users/user.ts'
import type { Route } from '../routing/route.ts'
import type { Authenticate } from './authenticate.ts'
import { availableTarget, type CheckedUpstream } from './available-target.ts'
import { type Admission, admitUncounted, type CountDailyUse } from './count-daily-use.ts'
import { andThen, type Guard, type GuardedRequest, recorded } from './guard.ts'
import { limitBody } from './limit-body.ts'
import type { RateLimit, WithinLimit } from './rate-limit.ts'
import { type PlanAllowed, requirePlan } from './require-plan.ts'
import { requireVerified } from './require-verified.ts'

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
 * Runs the guards of a request, before its body is read. Never throws. A refused request costs no daily use, because
 * uses are counted last.
 */
export type GuardChain<Allowed = Admission> = (
  request: GuardedRequest,
) => ChainResult<Allowed> | Promise<ChainResult<Allowed>>

interface Dependencies {
  authenticate: Authenticate
  limitRate: RateLimit
  countDailyUse: CountDailyUse
  decisions: GuardDecisions
}

/** Compiles only the guards that the route configures, so that the other guards cost nothing. */
export function compileGuards(
  route: Route,
  upstream: CheckedUpstream,
  dependencies: Dependencies,
): GuardChain {
  const { authenticate, limitRate, countDailyUse, decisions } = dependencies
  const ifActive = <In, Out>(name: GuardName, compile: () => Guard<In, Out>): Guard<In, Out> | undefined =>
    isGuardActive[name](route) ? recorded(name, decisions[name], compile()) : undefined

  const authentication = ifActive('authenticate', () => authenticate(route.auth)) ?? authenticate('none')
  const rateLimit = ifActive('rate_limit', () => limitRate(route))
  const plan = ifActive('plan', () => requirePlan(route.plans))
  const verified = ifActive('verified', () => requireVerified())
  const maxBody = ifActive('max_body', () => limitBody(route.max_body))
  const target = ifActive('target', () => availableTarget(upstream))
  const admission = ifActive('free_daily', () => countDailyUse) ?? admitUncounted

  const limited = andThen(authentication, rateLimit)
  const allowed = andThen(andThen(andThen(limited, plan), verified), maxBody)
  return neverThrowing(andThen(andThen(allowed, target), admission))
}

/**
 * Compiles the guards of a local endpoint: authentication and plan.
 * @param plans the allowed plans; `undefined` for every plan
 */
export function compileEndpointGuards(
  plans: readonly Plan[] | undefined,
  { authenticate, decisions }: Pick<Dependencies, 'authenticate' | 'decisions'>,
): GuardChain<EndpointAdmission> {
  const authenticated = recorded('authenticate', decisions.authenticate, authenticate('required'))
  // Local endpoints have no rate-limit guard.
  const limited = andThen<void, Identity, WithinLimit>(authenticated, undefined)
  const plan: Guard<WithinLimit, PlanAllowed> | undefined =
    plans && recorded('plan', decisions.plan, requirePlan(plans))
  const admission: Guard<PlanAllowed, EndpointAdmission> = (_, identity) => {
    // The authentication is `required`, so every admitted request has a user.
    return { allowed: true, identity: identity as Identity as AuthenticatedUser }
  }
  return neverThrowing(andThen(andThen(limited, plan), admission))
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
