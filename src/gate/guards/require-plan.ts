// Defines the plan guard. It runs after authentication, and before any use is counted.
import type { Identity } from '../../identity/identity.ts'
import { planRefusal } from '../../refusals/plan-refusal.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Plan } from '../../users/user.ts'
import type { Guard } from './guard.ts'
import type { ScopeAllowed } from './require-scope.ts'

declare const admitted: unique symbol

export type PlanAllowed = Identity & { readonly [admitted]: true }

export function anonymousRefusal(): Refusal {
  return new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } })
}

/**
 * Refuses anonymous requests with 401 `unauthenticated`, and users whose plan is not listed with 403
 * `plan_insufficient`.
 */
export function requirePlan(plans: readonly Plan[] | undefined): Guard<ScopeAllowed, PlanAllowed> {
  return (_, identity) => {
    if (plans === undefined) return identity as Identity as PlanAllowed
    if (identity.kind === 'anonymous') return anonymousRefusal()
    if (!plans.includes(identity.user.plan)) return planRefusal(plans, identity.user.plan)
    return identity as Identity as PlanAllowed
  }
}
