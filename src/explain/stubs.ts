// What stands in for stores and keys where requests are explained: one user of each plan, and a day's use as it is told.

import type { Clock } from '../clock.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEndpointTable, type LocalEndpoints } from '../endpoints/endpoint-table.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import type { Asked } from '../gate/gate.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import type { Operation } from '../openapi/operation.ts'
import { createLimiter } from '../storage/rate-limiter.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { utcDay } from '../usage/utc-day.ts'
import { type Plan, plans, type User } from '../users/user.ts'

/** An access token of the user who is on that plan here. In form it is one of ours: it must not reach an upstream. */
export function tokenOf(plan: Plan): string {
  const header = Buffer.from('{"alg":"ES256","typ":"at+jwt"}').toString('base64url')
  return `${header}.${plan}.explained`
}

/** How much of the day is spent, of whoever calls; to be set before a request is explained. */
export interface Day {
  used: number
}

export function standIns(limit: number, day: Day, clock: Clock): Asked {
  const users = plans.map(
    (plan, index): User => ({
      id: index + 1,
      email: `${plan}@example.com`,
      plan,
      is_active: 1,
      daily_usage: day.used,
      last_usage_date: null,
      created_at: new Date(0),
    }),
  )
  const byToken = new Map(users.map(({ id, plan }) => [tokenOf(plan), id]))
  return {
    identity: {
      tokens: {
        recall: () => undefined,
        verify: token => {
          const userId = byToken.get(token)
          return userId === undefined ? 'invalid' : { userId, kid: '', expiresAt: Number.POSITIVE_INFINITY }
        },
      },
      users: { find: userId => users[userId - 1], findOwner: () => undefined },
      lastUsed: { note: () => {} },
      badKeys: createLimiter('bad_keys', null, { clock }),
      onKeyFault: () => {},
    },
    // Every request is the first of its window.
    createLimiter: (name, limit) => {
      const fresh = () => createLimiter(name, limit, { clock })
      return { take: key => fresh().take(key), giveBack: async () => {} }
    },
    counter: createDailyCounter({
      store: {
        count: async (_userId, _day, limit) => (day.used < limit ? day.used + 1 : undefined),
        read: async () => ({ daily_usage: day.used, last_usage_date: utcDay(clock.now()) }),
      },
      clock,
      limit,
      onFallback: () => {},
    }),
    spent: { has: () => false, asking: () => () => {} },
  }
}

/** Of assertions that nobody receives. */
export const stubAssertions: Assertions = { for: async () => '<signed by the gateway>' }

/** The gateway's own endpoints, of which only where they are and whom they let in is looked at. */
export function stubEndpoints(): { endpoints: LocalEndpoints; operations: readonly Operation[] } {
  const auth = createAuthEndpoints({
    accounts: { register: unasked, login: unasked },
    sessions: { open: unasked, refresh: unasked, logout: unasked, revokeAll: unasked, list: unasked },
    limiters: { register: unlimited, login: unlimited, login_address: unlimited, refresh: unlimited },
    failures: { counting: unasked },
  })
  const user = createUserEndpoints({
    apiTokens: { replace: unasked, revoke: unasked },
    webhooks: { register: unasked, remove: unasked },
    randomBytes: unasked,
    clock: { now: unasked },
    inForce: unasked,
  })
  const upgrade = createUpgradeEndpoints('')
  return {
    endpoints: createEndpointTable([...auth, ...user], upgrade),
    operations: [...auth, ...user, ...upgrade].map(({ operation }) => operation),
  }
}

function unasked(): never {
  throw new Error('an explained request reached an endpoint')
}

const unlimited = { take: unasked, giveBack: unasked }
