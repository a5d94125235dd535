// Creates stubs of stores and keys for explained requests, with one user per plan.
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import { createOwnAccountEndpoints, switchedOffOperations } from '../endpoints/account.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import { createEndpointTable, type FindLocalPath } from '../endpoints/endpoint-table.ts'
import { createJwksEndpoint } from '../endpoints/jwks.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import { createSessionEndpoints } from '../endpoints/own-sessions.ts'
import { createPasswordEndpoints } from '../endpoints/password.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import { createSignedInEndpoint } from '../endpoints/signed-in.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import type { GuardDependencies } from '../gate/gate.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import { createRateLimiter } from '../storage/rate-limiter.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { utcDay } from '../usage/utc-day.ts'
import { type Plan, plans } from '../users/user.ts'
import type { UserWithEpoch } from '../users/user-store.ts'

/**
 * Returns a token in the form of a real token, so that the gateway recognizes it and removes it from upstream requests.
 */
export function stubToken(plan: Plan): string {
  const header = Buffer.from('{"alg":"ES256","typ":"at+jwt"}').toString('base64url')
  return `${header}.${plan}.explained`
}

/** The caller's record. Set it before a request is explained. */
export interface Caller {
  usedToday: number
  verified: boolean
  /** The specific user who makes the request. Undefined if the plan's stub user makes it. */
  user: { readonly id: number; readonly isActive: boolean } | undefined
}

export function stubDependencies(dailyLimit: number, caller: Caller, clock: Clock): GuardDependencies {
  const users = plans.map(
    (plan, index): UserWithEpoch => ({
      id: index + 1,
      email: `${plan}@example.com`,
      plan,
      is_active: 1,
      daily_usage: caller.usedToday,
      last_usage_date: null,
      created_at: new Date(0),
      email_verified_at: null,
      session_epoch: 0,
    }),
  )
  const byToken = new Map(users.map(({ id, plan }) => [stubToken(plan), id]))
  return {
    identity: {
      tokens: {
        get: () => undefined,
        verify: token => {
          const userId = byToken.get(token)
          return userId === undefined
            ? 'malformed'
            : {
                userId,
                kid: '',
                expiresAtMs: Number.POSITIVE_INFINITY,
                issuedAtMs: 0,
                sessionId: undefined,
              }
        },
      },
      users: { find: userId => recordOf(users[userId - 1], caller), findOwner: () => undefined },
      sessions: undefined,
      lastUsed: { record: () => {} },
      badKeys: createRateLimiter('bad_keys', null, { clock }),
      onApiTokenError: () => {},
    },
    // Each request gets a new limiter, so that every request is the first one in the window of its limiter.
    createRateLimiter: (name, limit) => {
      const fresh = () => createRateLimiter(name, limit, { clock })
      return { consume: key => fresh().consume(key), refund: async () => {} }
    },
    counter: createDailyCounter({
      store: {
        count: async (userIds, _day, limit) => {
          const counted = caller.usedToday < limit
          return userIds.map(() => ({ counted, used: caller.usedToday + (counted ? 1 : 0) }))
        },
        read: async () => ({ daily_usage: caller.usedToday, last_usage_date: utcDay(clock.now()) }),
      },
      clock,
      dailyLimit,
      onFallback: () => {},
    }),
    exhausted: { has: () => false, beginRead: () => () => {} },
  }
}

/**
 * Returns the record of the specific user if there is one, otherwise of the plan's stub user. Returns undefined for an
 * inactive user.
 */
function recordOf(ofPlan: UserWithEpoch | undefined, { verified, user }: Caller): UserWithEpoch | undefined {
  if (ofPlan === undefined || user?.isActive === false) return undefined
  return { ...ofPlan, id: user?.id ?? ofPlan.id, email_verified_at: verified ? new Date(0) : null }
}

/** Returns a placeholder instead of a signed assertion, because an explained request is shown but never sent. */
export const stubAssertions: Assertions = { tokenFor: async () => '<signed by the gateway>' }

/**
 * Creates the gateway's own endpoints. To explain a request, the program uses only their paths and plans, and calls
 * none of them.
 */
export function stubEndpoints(config: Pick<Config, 'account'>): FindLocalPath {
  const endpoints = [
    createAuthEndpoints,
    createSessionEndpoints,
    createPasswordEndpoints,
    createOwnAccountEndpoints,
    createResetEndpoints,
    createEmailEndpoints,
    createUserEndpoints,
  ].flatMap((create): LocalEndpoint[] => create(stubsOfEndpoints))
  return createEndpointTable(
    [...endpoints, createJwksEndpoint(unreachable)],
    createUpgradeEndpoints(''),
    switchedOffOperations(config),
  )
}

function unreachable(): never {
  throw new Error('an explained request reached an endpoint')
}

/** The dependencies of the endpoints. No endpoint is called, so every call of a dependency throws. */
const stubsOfEndpoints = new Proxy(
  { signedIn: createSignedInEndpoint(unreachable) },
  { get: (own, name) => Reflect.get(own, name) ?? unreachable },
) as never
