// The upgrade path, where plan and daily-limit errors point: which plan comes next, and where it is paid (CONTRACT §5).

import { Refusal } from '../refusals/refusal.ts'
import { isPlan, type Plan, plans, type User } from '../users/user.ts'
import type { GuardedEndpoint } from './endpoint.ts'
import { upgradeOperations } from './upgrade.openapi.ts'

/**
 * GET, and POST, which throws Refusal `plan_invalid` or `payment_not_configured`.
 * @param upgradeUrl `subscription.upgrade_url`: with `{user_id}` and `{plan}` to be filled in; empty is none
 */
export function createUpgradeEndpoints(upgradeUrl: string): GuardedEndpoint[] {
  const checkout = (user: User, plan: Plan) => fillIn(upgradeUrl, { user_id: String(user.id), plan })
  return [
    {
      kind: 'guarded',
      operation: upgradeOperations.show,
      plans: undefined,
      async handle({ user }) {
        const next = planAbove(user.plan)
        const isOffered = upgradeUrl !== '' && next !== undefined
        return {
          status: 200,
          body: { current_plan: user.plan, plans, checkout_url: isOffered ? checkout(user, next) : null },
        }
      },
    },
    {
      kind: 'guarded',
      operation: upgradeOperations.go,
      plans: undefined,
      async handle({ user, body }) {
        // What the client got wrong comes first: it is the same wherever the gateway runs.
        const plan = wantedPlan(body.value('plan'), user.plan)
        if (upgradeUrl === '') throw new Refusal('payment_not_configured')
        return { status: 303, headers: { location: checkout(user, plan) } }
      },
    },
  ]
}

/**
 * The plan that was named, or the next one up where none was: nothing, `null` or the empty text of an unfilled form.
 * Anything else that is no plan is refused, not taken for silence: nobody is led to pay for what they did not ask.
 */
function wantedPlan(named: unknown, current: Plan): Plan {
  const wanted = named === undefined || named === null || named === '' ? planAbove(current) : named
  if (!isPlan(wanted) || plans.indexOf(wanted) <= plans.indexOf(current)) throw new Refusal('plan_invalid')
  return wanted
}

function planAbove(plan: Plan): Plan | undefined {
  return plans[plans.indexOf(plan) + 1]
}

/** In one pass, so that what is filled in is not looked at again. */
function fillIn(address: string, values: { user_id: string; plan: string }): string {
  return address.replace(/\{(user_id|plan)\}/g, (_, name: 'user_id' | 'plan') =>
    encodeURIComponent(values[name]),
  )
}
