// Formats the plans as aligned text.
import type { PlanListing } from '../../admin/api/list-plans.ts'
import { createTable } from '../print.ts'

/** The quotas are the last column, because a plan may have many. */
export function plansAsTable({ plans, unknown }: PlanListing): string {
  return createTable(['PLAN', 'USERS', 'RATE LIMIT', 'API KEYS', 'WEBHOOK', 'QUOTAS'])([
    ...plans.map(({ name, users, rate_limit, api_keys, webhook, quotas }) => [
      name,
      String(users ?? '-'),
      rate_limit === null ? '-' : `${rate_limit.requests}/${rate_limit.window_seconds}s`,
      String(api_keys),
      webhook ? 'yes' : 'no',
      Object.entries(quotas)
        .map(([quota, allowance]) => `${quota} ${allowance}`)
        .join(', ') || '-',
    ]),
    ...(unknown ?? []).map(({ name, users }) => [name, String(users), 'not configured']),
  ])
}
