// The plan guard (spec §5): runs on what authentication found, and only what it lets through can be counted.

import type { Identity } from '../../identity/identity.ts'
import { upgradePath } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Plan } from '../../users/user.ts'
import type { Limited } from './rate-limit.ts'

declare const admitted: unique symbol

/** An identity that the plan guard let through. */
export type Admitted = Identity & { readonly [admitted]: true }

/** @throws Refusal 401 `unauthenticated` for nobody, 403 `plan_insufficient` for a plan that is not in the list */
export function requirePlan(identity: Limited, route: { plans?: readonly Plan[] | undefined }): Admitted {
  const { plans } = route
  if (plans !== undefined) {
    if (identity.kind === 'anonymous') {
      throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } })
    }
    if (!plans.includes(identity.user.plan)) {
      const body = { required: plans, current_plan: identity.user.plan, upgrade_url: upgradePath }
      throw new Refusal('plan_insufficient', { body })
    }
  }
  return identity as Identity as Admitted
}
