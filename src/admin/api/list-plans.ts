// Lists the plans, and how many users have each plan.
import type { Plans } from '../../config/plans.ts'
import { PLAN_PATTERN } from '../../config/sections/builders.ts'
import { shownRate } from '../../endpoints/usage.ts'
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { type Decoded, Type } from '../../schema/type.ts'
import type { PlanCount } from '../../users/plan-store.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'

const users = 'The number of users, which includes inactive users.'

const listing = terms.record({
  plans: Type.Array(
    terms.record(
      {
        name: terms.plan,
        users: terms.nullable(terms.count(`${users} \`null\` if the count takes more than 1 s.`)),
        quotas: Type.Record(PLAN_PATTERN, terms.text('The allowance, for example `1000/month`.'), {
          description: 'The allowances of the plan, by the name of the quota.',
        }),
        rate_limit: terms.planRate,
        api_keys: terms.count('The maximum number of API keys of one user.'),
        webhook: Type.Boolean({ description: 'Whether a user may register a webhook.' }),
      },
      { title: 'Plan', description: 'A configured plan.' },
    ),
    { description: 'The configured plans, from the lowest to the highest.' },
  ),
  unknown: terms.nullable(
    Type.Array(terms.record({ name: terms.plan, users: terms.count(users) }), {
      description:
        'The plans that users have, but that are not configured. `null` if the count takes more than 1 s.',
    }),
  ),
})

export type PlanListing = Decoded<typeof listing>

export const listPlans = {
  method: 'GET',
  path: '/admin/v1/plans',
  id: 'listPlans',
  summary: 'Lists the plans with their numbers of users',
  caller: 'operator',
  roles: ['read', 'support', 'billing'],
  responses: { 200: { description: 'The configured plans and the unknown plans.', body: listing } },
  refusals: operatorRefusals,
} as const satisfies Operation

export function createPlanListing({ plans, planStore }: AdminDependencies): AdminEndpoint {
  return {
    operation: listPlans,
    handle: async () => toPlanListing(plans(), await planStore.count()),
  }
}

/** @param counts undefined if the users could not be counted in time */
export function toPlanListing(plans: Plans, counts: readonly PlanCount[] | undefined): PlanListing {
  const usersOf = new Map(counts?.map(({ plan, users }) => [plan, users]))
  return {
    plans: plans.all.map(plan => ({
      name: plan.name,
      users: counts === undefined ? null : (usersOf.get(plan.name) ?? 0),
      quotas: Object.fromEntries(Object.entries(plan.quotas).map(([quota, { text }]) => [quota, text])),
      rate_limit: shownRate(plan),
      api_keys: plan.api_keys,
      webhook: plan.webhook,
    })),
    unknown:
      counts
        ?.filter(({ plan }) => plans.find(plan) === undefined)
        .map(({ plan, users }) => ({ name: plan, users })) ?? null,
  }
}
