// The endpoints that show the next plan and its payment page. A refusal links to them if the user needs a higher plan,
// or has no uses left.
import { PLAN_PATTERN } from '../config/sections/builders.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { upgradePath } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import type { Plan, User } from '../users/user.ts'
import { type GuardedEndpoint, guardedEndpoint, guardRefusals } from './local-endpoint.ts'

export const upgradeOperations = {
  show: {
    method: 'GET',
    path: upgradePath,
    id: 'showUpgrade',
    summary: 'Shows the user’s plan and the payment page of the next plan',
    description: 'A declared route with this path replaces this endpoint.',
    caller: 'user',
    responses: {
      200: {
        description: 'The current plan, all plans, and the payment page.',
        body: terms.record({
          current_plan: terms.plan,
          plans: Type.Array(terms.plan, { description: 'All plans, from the lowest to the highest.' }),
          checkout_url: terms.nullable(
            terms.text(
              'The URL of the payment page. `null` on the highest plan, or if no payment page is configured.',
            ),
          ),
        }),
      },
    },
    refusals: guardRefusals,
  },
  go: {
    method: 'POST',
    path: upgradePath,
    id: 'upgrade',
    summary: 'Redirects the user to the payment page of a higher plan',
    description: 'A declared route with this path replaces this endpoint.',
    caller: 'user',
    body: terms.openRecord({
      plan: Type.Optional(
        terms.text('The plan to buy. By default, the next higher plan.', { pattern: PLAN_PATTERN }),
      ),
    }),
    responses: {
      303: {
        description: 'A redirect to the payment page.',
        headers: { location: 'The URL of the payment page.' },
      },
    },
    refusals: mergeRefusals(guardRefusals, { 400: ['plan_invalid'], 501: ['payment_not_configured'] }),
  },
} as const satisfies Record<string, Operation>

/**
 * The POST endpoint throws Refusal `plan_invalid` or `payment_not_configured`.
 * @param upgradeUrl the URL of the payment page with the placeholders `{user_id}` and `{plan}`; empty if there is none
 * @param plans the names of the configured plans, lowest first
 */
export function createUpgradeEndpoints(upgradeUrl: string, plans: readonly Plan[]): GuardedEndpoint[] {
  const checkout = (user: User, plan: Plan) => fillIn(upgradeUrl, { user_id: String(user.id), plan })
  return [
    guardedEndpoint(upgradeOperations.show, { keys: 'api_token' }, async ({ user }) => {
      const next = planAbove(plans, user.plan)
      const isOffered = upgradeUrl !== '' && next !== undefined
      return {
        status: 200,
        body: { current_plan: user.plan, plans, checkout_url: isOffered ? checkout(user, next) : null },
      }
    }),
    guardedEndpoint(upgradeOperations.go, { keys: 'api_token' }, async ({ user, body }) => {
      // Errors of the client are reported first, because they do not depend on the configuration of the gateway.
      const plan = wantedPlan(plans, body.value('plan'), user.plan)
      if (upgradeUrl === '') throw new Refusal('payment_not_configured')
      return { status: 303, headers: { location: checkout(user, plan) } }
    }),
  ]
}

/**
 * Returns the plan that the client requested. An absent value, `null` and an empty text mean the next higher plan. Any
 * other value must be a plan above the current one, so that no user pays for a wrong plan. If the current plan is not
 * configured, every configured plan is above it.
 */
function wantedPlan(plans: readonly Plan[], named: unknown, current: Plan): Plan {
  const wanted = named === undefined || named === null || named === '' ? planAbove(plans, current) : named
  if (typeof wanted !== 'string' || plans.indexOf(wanted) <= plans.indexOf(current))
    throw new Refusal('plan_invalid')
  return wanted
}

/** @returns undefined for the highest plan, and for a plan that is not configured */
function planAbove(plans: readonly Plan[], plan: Plan): Plan | undefined {
  return plans.includes(plan) ? plans[plans.indexOf(plan) + 1] : undefined
}

/** Replaces all placeholders in one pass, so that inserted values are not expanded again. */
function fillIn(address: string, values: { user_id: string; plan: string }): string {
  return address.replace(/\{(user_id|plan)\}/g, (_, name: 'user_id' | 'plan') =>
    encodeURIComponent(values[name]),
  )
}
