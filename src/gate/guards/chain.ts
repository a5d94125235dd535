// The guards of a route in the order of CONTRACT §4, compiled when the configuration is loaded.
import { type GuardName, isGuardActive } from '../../config/active-guards.ts'
import type { AuthenticatedUser, Identity } from '../../identity/identity.ts'
import type { GuardDecisions } from '../../observability/metrics/counters.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Plan } from '../../users/user.ts'
import type { Route } from '../routing/route.ts'
import type { Authenticate } from './authenticate.ts'
import { availableTarget, type CheckedUpstream } from './available-target.ts'
import type { CountDailyUse, UsageCounted } from './count-daily-use.ts'
import { andThen, counted, type Guard, type GuardedRequest } from './guard.ts'
import { limitBody } from './limit-body.ts'
import type { RateLimit, WithinLimit } from './rate-limit.ts'
import { type PlanAllowed, requirePlan } from './require-plan.ts'
import { requireVerified } from './require-verified.ts'

/** The result of a route's guards. */
export type Decision<Allowed = UsageCounted> =
  | { readonly allowed: true; readonly identity: Allowed }
  /** `thrown` is a Refusal, ClientDisconnected, or a store's error. */
  | { readonly allowed: false; readonly thrown: unknown }

/** Never throws. Runs before the body is read; a refused request spends no use, because the count comes last. */
export type GuardChain<Allowed = UsageCounted> = (
  request: GuardedRequest,
) => Decision<Allowed> | Promise<Decision<Allowed>>

interface Dependencies {
  authenticate: Authenticate
  limitRate: RateLimit
  countDailyUse: CountDailyUse
  /** Counts the guards' decisions. */
  decisions: GuardDecisions
}

/** Only the guards that the route configures: the others cost its requests nothing. */
export function compileGuards(
  route: Route,
  upstream: CheckedUpstream,
  dependencies: Dependencies,
): GuardChain {
  const { authenticate, limitRate, countDailyUse, decisions } = dependencies
  const ifActive = <In, Out>(name: GuardName, compile: () => Guard<In, Out>): Guard<In, Out> | undefined =>
    isGuardActive[name](route) ? counted(name, decisions[name], compile()) : undefined

  const authentication = ifActive('authenticate', () => authenticate(route.auth)) ?? authenticate('none')
  const rateLimit = ifActive('rate_limit', () => limitRate(route))
  const plan = ifActive('plan', () => requirePlan(route.plans))
  const verified = ifActive('verified', () => requireVerified())
  const maxBody = ifActive('max_body', () => limitBody(route.max_body))
  const target = ifActive('target', () => availableTarget(upstream))
  const dailyUse = ifActive('free_daily', () => countDailyUse)

  const limited = andThen(authentication, rateLimit)
  const allowed = andThen(andThen(andThen(limited, plan), verified), maxBody)
  return decided(andThen(andThen(allowed, target), dailyUse))
}

/** The guards of a local endpoint: authentication and plan. @param plans `undefined` for every plan */
export function compileEndpointGuards(
  plans: readonly Plan[] | undefined,
  { authenticate, decisions }: Pick<Dependencies, 'authenticate' | 'decisions'>,
): GuardChain<AuthenticatedUser> {
  const authenticated = counted('authenticate', decisions.authenticate, authenticate('required'))
  // Only routes have a rate limit of their own.
  const limited = andThen<void, Identity, WithinLimit>(authenticated, undefined)
  const plan: Guard<WithinLimit, PlanAllowed> | undefined =
    plans && counted('plan', decisions.plan, requirePlan(plans))
  // `required` allows no request without a user.
  return decided(andThen(limited, plan) as Guard<void, Identity> as Guard<void, AuthenticatedUser>)
}

function decided<Allowed>(guard: Guard<void, Allowed>): GuardChain<Allowed> {
  const refused = (thrown: unknown) => ({ allowed: false, thrown }) as const
  const decide = (request: GuardedRequest, ruling: Allowed | Refusal): Decision<Allowed> => {
    if (ruling instanceof Refusal) return refused(ruling)
    request.trace?.onGuard(undefined)
    return { allowed: true, identity: ruling }
  }
  return request => {
    try {
      const ruling = guard(request)
      return ruling instanceof Promise
        ? ruling.then(settled => decide(request, settled), refused)
        : decide(request, ruling)
    } catch (thrown) {
      return refused(thrown)
    }
  }
}
