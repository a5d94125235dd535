// Creates stubs of stores and keys for explained requests. Only the caller has an account.
import type { Clock } from '../clock.ts'
import type { Plans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import { createOwnAccountEndpoints } from '../endpoints/account.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import { createEndpointTable, type FindLocalPath } from '../endpoints/endpoint-table.ts'
import { createExternalEndpoints } from '../endpoints/external-sign-in.ts'
import { createIdentityEndpoints } from '../endpoints/identities.ts'
import { createJwksEndpoint } from '../endpoints/jwks.ts'
import { createKeyEndpoints } from '../endpoints/keys.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import { createSessionEndpoints } from '../endpoints/own-sessions.ts'
import { createPasswordEndpoints } from '../endpoints/password.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import { createSignedInEndpoint } from '../endpoints/signed-in.ts'
import { switchedOffOperations } from '../endpoints/switched-off.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUsageEndpoints } from '../endpoints/usage.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import type { GuardDependencies } from '../gate/gate.ts'
import type { ApiKey } from '../identity/api-keys/api-key-store.ts'
import type { KeyOwner } from '../identity/cache/user-cache.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import { createRateLimiter } from '../storage/rate-limiter.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import type { QuotaCount, QuotaUse } from '../usage/quota-count-store.ts'
import type { QuotaUsage } from '../usage/quota-usage.ts'
import { periodEndMs, utcDay } from '../usage/utc-day.ts'
import type { Plan } from '../users/user.ts'
import type { UserWithEpoch } from '../users/user-store.ts'

/**
 * Returns a token in the form of a real token, so that the gateway recognizes it and removes it from upstream requests.
 */
export function stubToken(plan: Plan): string {
  const header = Buffer.from('{"alg":"ES256","typ":"at+jwt"}').toString('base64url')
  return `${header}.${plan}.explained`
}

/** A key in the form of a real key, so that the gateway recognizes it and removes it from upstream requests. */
export const stubKey = `peage_${'0'.repeat(36)}`

/** An API key that was made by `POST /api/v1/auth/keys`. */
export type ExplainedKey = Pick<ApiKey, 'scopes'>

export interface ExplainedUser {
  readonly id: number
  readonly isActive: boolean
  /** The uses of this user's quotas in the current period. */
  readonly usage: readonly Pick<QuotaUsage, 'name' | 'used'>[]
}

/** The caller of the explained request. The program sets it before each request. */
export interface Caller {
  /** The plan of the user. It may be missing in the configuration. */
  plan: Plan
  usedToday: number
  /** The uses of the route's quota in the current period. */
  used: number
  verified: boolean
  /** The API key of the request. Undefined if the user has an access token. */
  key: ExplainedKey | undefined
  /** The specific user who sends the request. Undefined if a stub user with this plan sends the request. */
  user: ExplainedUser | undefined
}

export function stubDependencies(
  dailyLimit: number,
  plans: readonly Plan[],
  caller: Caller,
  clock: Clock,
): GuardDependencies {
  return {
    identity: {
      tokens: {
        get: () => undefined,
        verify: () => ({
          userId: idOf(caller, plans),
          kid: '',
          expiresAtMs: Number.POSITIVE_INFINITY,
          issuedAtMs: 0,
          sessionId: undefined,
        }),
      },
      users: {
        find: userId => recordOf(userId, caller),
        findOwner: () => ownerOf(idOf(caller, plans), caller),
        lastKnownKey: () => undefined,
      },
      sessions: undefined,
      lastUsed: { record: () => {} },
      badKeys: createRateLimiter('bad_keys', null, { clock }),
      onApiKeyError: () => {},
      clock,
    },
    // Each request is counted by a new limiter, so it is always the first request in the window.
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
    exhausted: { get: () => undefined, beginRead: () => () => {}, forget: () => {} },
    quotas: { use: async use => stubCount(use, usedOf(caller, use.quota), clock) },
    exhaustedQuotas: { get: () => undefined, beginRead: () => () => {}, forget: () => {} },
  }
}

/** Returns the id of the specific user. Without a specific user, returns the id of the plan's stub user. */
function idOf({ user, plan }: Caller, plans: readonly Plan[]): number {
  if (user !== undefined) return user.id
  const index = plans.indexOf(plan)
  return (index === -1 ? plans.length : index) + 1
}

function usedOf({ user, used }: Caller, quota: string): number {
  return user === undefined ? used : (user.usage.find(({ name }) => name === quota)?.used ?? 0)
}

/** Returns the record of the caller. Returns undefined for an inactive user. */
function recordOf(id: number, { plan, usedToday, verified, user }: Caller): UserWithEpoch | undefined {
  if (user?.isActive === false) return undefined
  return {
    id,
    email: `${plan}@example.com`,
    plan,
    is_active: 1,
    daily_usage: usedToday,
    last_usage_date: null,
    created_at: new Date(0),
    email_verified_at: verified ? new Date(0) : null,
    session_epoch: 0,
  }
}

/** Returns the caller with the API key. Returns undefined if the caller has no API key or is inactive. */
function ownerOf(userId: number, caller: Caller): KeyOwner | undefined {
  const user = recordOf(userId, caller)
  if (user === undefined || caller.key === undefined) return undefined
  const { scopes } = caller.key
  return { user, apiKey: { id: stubKeyId, userId, isApiToken: false, scopes, expiresAtMs: null } }
}

/** An id that no real key has. */
const stubKeyId = '00000000-0000-0000-0000-000000000000'

/** Returns a placeholder instead of a signed assertion, because an explained request is shown but never sent. */
export const stubAssertions: Assertions = { tokenFor: async () => '<signed by the gateway>' }

/**
 * Creates the gateway's own endpoints. To explain a request, the program uses only their paths and plans, and calls
 * none of them.
 */
export function stubEndpoints(config: Pick<Config, 'account' | 'auth'>, plans: Plans): FindLocalPath {
  const stubs = createEndpointStubs(plans)
  const endpoints = [
    createAuthEndpoints,
    createSessionEndpoints,
    createPasswordEndpoints,
    createOwnAccountEndpoints,
    createResetEndpoints,
    createEmailEndpoints,
    createUserEndpoints,
    createUsageEndpoints,
    createKeyEndpoints,
    createExternalEndpoints,
    createIdentityEndpoints,
  ].flatMap((create): LocalEndpoint[] => create(stubs))
  return createEndpointTable(
    [...endpoints, createJwksEndpoint(unreachable)],
    createUpgradeEndpoints('', plans.names),
    switchedOffOperations(config),
  )
}

function unreachable(): never {
  throw new Error('an explained request reached an endpoint')
}

/** Creates dependencies for the endpoints. No endpoint is called, so a call of a dependency is a bug and throws. */
function createEndpointStubs(plans: Plans): never {
  return new Proxy(
    { plans, signedIn: createSignedInEndpoint(unreachable) },
    { get: (own, name) => Reflect.get(own, name) ?? unreachable },
  ) as never
}

/**
 * Decides, in the same way as Postgres, whether a use is counted.
 * @param used the uses of the caller that are already counted in the current period
 */
function stubCount({ period, limit, cost }: QuotaUse, used: number, clock: Clock): QuotaCount {
  const now = clock.now()
  const counted = used + cost <= limit
  const resetsAtMs = periodEndMs(period, now)
  return { counted, used: counted ? used + cost : used, isAhead: false, resetsAtMs, leftMs: resetsAtMs - now }
}
