// Defines the plan guard. It runs after authentication, and before any use is counted.
import type { Identity } from '../../identity/identity.ts'
import { upgradePath } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Plan } from '../../users/user.ts'
import type { Guard } from './guard.ts'
import type { WithinLimit } from './rate-limit.ts'

declare const admitted: unique symbol

export type PlanAllowed = Identity & { readonly [admitted]: true }

export function anonymousRefusal(): Refusal {
  return new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } })
}

/** Refuses anonymous requests with 401 `unauthenticated`, and users of other plans with 403 `plan_insufficient`. */
export function requirePlan(plans: readonly Plan[] | undefined): Guard<WithinLimit, PlanAllowed> {
  return (_, identity) => {
    if (plans === undefined) return identity as Identity as PlanAllowed
    if (identity.kind === 'anonymous') return anonymousRefusal()
    if (!plans.includes(identity.user.plan)) {
      const body = { required: plans, current_plan: identity.user.plan, upgrade_url: upgradePath }
      return new Refusal('plan_insufficient', { body })
    }
    return identity as Identity as PlanAllowed
  }
}
