// Stubs for stores, keys and upstreams in explained requests: one user per plan, and the daily usage that the request
// states.

import type { Dispatcher } from 'undici'
import type { Clock } from '../clock.ts'
import type { Config, UpstreamConfig } from '../config/schema/schema.ts'
import { createOwnAccountEndpoints, switchedOffOperations } from '../endpoints/account.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import { createEndpointTable, type LocalEndpoints } from '../endpoints/endpoint-table.ts'
import { createPasswordEndpoints } from '../endpoints/password.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import { createSessionEndpoints } from '../endpoints/sessions.ts'
import { createSignedInEndpoint } from '../endpoints/signed-in.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import type { GuardDependencies } from '../gate/gate.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import { createHistogram } from '../observability/metrics/histogram.ts'
import type { Operation } from '../openapi/operation.ts'
import { createRateLimiter } from '../storage/rate-limiter.ts'
import { connectionLimitOf } from '../upstream/targets/connection-pool.ts'
import type { Endpoint } from '../upstream/targets/endpoint.ts'
import { createLoadBalancer, type PickEndpoint, weightsByUrl } from '../upstream/targets/load-balancer.ts'
import { hashText } from '../upstream/targets/rendezvous.ts'
import type { Upstream, Upstreams } from '../upstream/targets/upstreams.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { utcDay } from '../usage/utc-day.ts'
import { type Plan, plans } from '../users/user.ts'
import type { UserWithEpoch } from '../users/user-store.ts'

/** Access token of the plan's stub user. It has a real token's form, so the gateway must keep it from upstreams. */
export function stubToken(plan: Plan): string {
  const header = Buffer.from('{"alg":"ES256","typ":"at+jwt"}').toString('base64url')
  return `${header}.${plan}.explained`
}

/** What the caller's record says; set it before a request is explained. */
export interface Caller {
  usedToday: number
  verified: boolean
  /** A user in particular, in the place of the plan's. */
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
    // Every request is the first of its window.
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

/** Of the plan's user, or of the one in particular, who is unknown while inactive. */
function recordOf(ofPlan: UserWithEpoch | undefined, { verified, user }: Caller): UserWithEpoch | undefined {
  if (ofPlan === undefined || user?.isActive === false) return undefined
  return { ...ofPlan, id: user?.id ?? ofPlan.id, email_verified_at: verified ? new Date(0) : null }
}

/** Placeholder for assertions, which are shown but never sent. */
export const stubAssertions: Assertions = { tokenFor: async () => '<signed by the gateway>' }

/** The gateway's own endpoints: only their paths and plans are read, and calling one throws. */
export function stubEndpoints(config: Pick<Config, 'account'>): {
  endpoints: LocalEndpoints
  operations: readonly Operation[]
} {
  const auth = createAuthEndpoints({
    accounts: { register: unreachable, login: unreachable },
    sessions: { refresh: unreachable, logout: unreachable },
    limiters: {
      register: unreachableLimiter,
      login: unreachableLimiter,
      login_address: unreachableLimiter,
      refresh: unreachableLimiter,
    },
    failedLogins: { attempt: unreachable },
    onRegistered: unreachable,
  })
  const signedIn = createSignedInEndpoint(unreachable)
  const sessions = createSessionEndpoints({
    sessions: { list: unreachable, end: unreachable, endOthers: unreachable },
    signedIn,
    clock: { now: unreachable },
  })
  const password = createPasswordEndpoints({
    passwordChange: { change: unreachable },
    judgePassword: unreachable,
    limiters: { login: unreachableLimiter, login_address: unreachableLimiter },
    failedLogins: { attempt: unreachable },
    signedIn,
  })
  const account = createOwnAccountEndpoints({
    users: { findById: unreachable },
    exports: { read: unreachable },
    accountDeletion: { delete: unreachable },
    limiters: { login: unreachableLimiter, login_address: unreachableLimiter },
    failedLogins: { attempt: unreachable },
    freeDaily: 1,
    signedIn,
    clock: { now: unreachable },
  })
  const reset = createResetEndpoints({ passwordReset: undefined, usePresented: unreachable })
  const email = createEmailEndpoints({
    mailed: undefined,
    currentPassword: { verify: unreachable },
    usePresented: unreachable,
    limiters: { login: unreachableLimiter, login_address: unreachableLimiter },
    failedLogins: { attempt: unreachable },
    requireSignedIn: unreachable,
    signedIn,
  })
  const user = createUserEndpoints({
    apiTokens: { replace: unreachable, revoke: unreachable },
    webhooks: { register: unreachable, remove: unreachable },
    randomBytes: unreachable,
    clock: { now: unreachable },
    requireLiveCredential: unreachable,
    changesVisible: unreachable,
  })
  const upgrade = createUpgradeEndpoints('')
  const own = [...auth, ...sessions, ...password, ...account, ...reset, ...email, ...user]
  return {
    endpoints: createEndpointTable(own, upgrade, switchedOffOperations(config)),
    operations: [...own, ...upgrade].map(({ operation }) => operation),
  }
}

function unreachable(): never {
  throw new Error('an explained request reached an endpoint')
}

const unreachableLimiter = { consume: unreachable, refund: unreachable }

/** The request that a target would receive, and the handler that waits for its response. */
export interface Dispatched {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Names and values alternating. */
  readonly fields: readonly string[]
  readonly handler: Dispatcher.DispatchHandler
}

/** All targets are available. @param onDispatch called instead of the network */
export function createStubUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  onDispatch: (dispatched: Dispatched) => void,
): Pick<Upstreams, 'get'> {
  return {
    get(name) {
      const config = configs[name]
      if (config === undefined) throw new Error(`upstream ${name} was not checked`)
      return createStubUpstream(name, config, onDispatch)
    },
  }
}

function createStubUpstream(
  name: string,
  config: UpstreamConfig,
  onDispatch: (dispatched: Dispatched) => void,
): Upstream {
  const targets = [...weightsByUrl(config)].map(([origin, weight]) => {
    const dispatch = ({ path, headers }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
      onDispatch({ origin, path, fields: headers as string[], handler })
    }
    const connection = { dispatch, release: () => {} }
    const endpoint: Endpoint = {
      name: origin,
      origin,
      host: new URL(origin).host,
      serverName: undefined,
      hash: 0,
      pool: {
        hasFree: () => true,
        admits: () => true,
        reserve: () => {},
        cancel: () => {},
        tryAcquire: () => connection,
        acquire: async () => connection,
      },
      isAvailable: () => true,
      isUnchecked: () => false,
      ejection: { isEjected: () => false, beginAttempt: () => () => {}, readmit: () => {} },
      beginAttempt: () => () => {},
      state: () => ({ checks: null, problem: null, circuit: null }),
    }
    return { weight, endpoint, target: { origin, hash: hashText(origin), endpoints: () => [endpoint] } }
  })
  // Taking turns, a balancer that is new for each request names the same target each time.
  const pickEndpoint: PickEndpoint = (...pick) => createLoadBalancer(targets)(...pick)
  return {
    connectionLimit: connectionLimitOf(name, config),
    endpointFor: () => targets.find(({ weight }) => weight > 0)?.endpoint,
    retries: 0,
    timeouts: config.timeouts,
    splitsByUser: config.split_by === 'user',
    durations: createHistogram(),
    hasAlternatives: () => false,
    isAvailable: () => targets.some(({ weight }) => weight > 0),
    hasFreeConnection: () => true,
    pickEndpoint,
  }
}
