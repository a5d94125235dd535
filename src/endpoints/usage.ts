// The endpoint that shows the limits of the user's plan, and how much of each quota the user has used.
import type { Plans } from '../config/plans.ts'
import type { PlanConfig } from '../config/sections/schema.ts'
import type { Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import type { QuotaRecordStore } from '../usage/quota-record-store.ts'
import { readQuotaUsage } from '../usage/quota-usage.ts'
import { authPrefix } from './auth.ts'
import { anyKeyRefusals, type GuardedEndpoint, guardedEndpoint } from './local-endpoint.ts'

export const usageOperations = {
  show: {
    method: 'GET',
    path: `${authPrefix}/usage`,
    id: 'showUsage',
    summary: 'Shows the rate limit and the quotas of the current user’s plan',
    caller: 'user',
    responses: {
      200: {
        description: 'The limits of the plan, and the uses that are counted in the current periods.',
        body: terms.record({
          plan: terms.plan,
          rate_limit: terms.planRate,
          quotas: terms.quotaUsage,
        }),
      },
    },
    refusals: anyKeyRefusals,
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  plans: Plans
  quotaRecords: Pick<QuotaRecordStore, 'read'>
}

/** The endpoint throws StorageError if the store fails. */
export function createUsageEndpoints({ plans, quotaRecords }: Dependencies): GuardedEndpoint[] {
  return [
    guardedEndpoint(usageOperations.show, { keys: 'all' }, async ({ user }) => {
      const plan = plans.find(user.plan)
      return {
        status: 200,
        body: {
          plan: user.plan,
          // The rate limit of the first plan applies to users whose plan is not configured.
          rate_limit: shownRate(plan ?? plans.first),
          quotas: await readQuotaUsage(quotaRecords, user.id, plan),
        },
      }
    }),
  ]
}

/** Returns the rate limit of a plan in the form of the API responses; null if the plan has no rate limit. */
export function shownRate({ rate_limit }: PlanConfig): { requests: number; window_seconds: number } | null {
  if (!rate_limit) return null
  return { requests: rate_limit.limit, window_seconds: Math.ceil(rate_limit.windowMs / 1000) }
}
