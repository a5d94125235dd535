// A route's guards over real tokens, caches, limiter and counter; their records are held in maps in the place of a database.

import type { RouteConfig } from '../../../src/config/sections/schema.ts'
import { createAuthenticate } from '../../../src/gate/guards/authenticate.ts'
import type { CheckedUpstream } from '../../../src/gate/guards/available-target.ts'
import { type ChainResult, compileEndpointGuards, compileGuards } from '../../../src/gate/guards/chain.ts'
import { createCountDailyUse } from '../../../src/gate/guards/count-daily-use.ts'
import { createRateLimit } from '../../../src/gate/guards/rate-limit.ts'
import { parseRequestHead } from '../../../src/gate/parsing/request-head.ts'
import { createTrustedProxies } from '../../../src/http/client-address.ts'
import { hashApiToken } from '../../../src/identity/api-tokens/api-tokens.ts'
import { createTokenCache } from '../../../src/identity/cache/token-cache.ts'
import { createUserCache } from '../../../src/identity/cache/user-cache.ts'
import { anonymous, type Identity } from '../../../src/identity/identity.ts'
import { generatePrivateJwk, readPrivateJwk } from '../../../src/identity/keys/signing-key.ts'
import { createTokens } from '../../../src/identity/tokens/tokens.ts'
import { createCounters } from '../../../src/observability/metrics/counters.ts'
import { Refusal } from '../../../src/refusals/refusal.ts'
import {
  type CreateRateLimiter,
  createRateLimiter,
  type RateLimiter,
} from '../../../src/storage/rate-limiter.ts'
import type { Endpoint } from '../../../src/upstream/targets/endpoint.ts'
import { createDailyCounter } from '../../../src/usage/daily-counter.ts'
import { createExhaustedUsers } from '../../../src/usage/exhausted-users.ts'
import type { Plan } from '../../../src/users/user.ts'
import type { UserWithEpoch } from '../../../src/users/user-store.ts'
import { handFeed } from '../../support/hand-feed.ts'
import { endless } from '../../support/sessions.ts'
import { aRequest } from '../a-request.ts'
import { routeWith } from '../a-route.ts'

const key = await readPrivateJwk((await generatePrivateJwk('ES256')).text)
const foreign = await readPrivateJwk((await generatePrivateJwk('ES256')).text)

/** Noon of a day, UTC. */
const noon = Date.UTC(2096, 1, 28, 12)

export function guardStage({ dailyLimit = 1, badKeys = 2, followsSessions = false } = {}) {
  const clock = { at: noon, now: () => clock.at }
  const feed = handFeed()
  const counters = createCounters()
  const records = new Map<number, UserWithEpoch>()
  const apiTokens = new Map<string, { apiTokenId: number; userId: number }>()
  const liveSessions = new Set<string>([endless.id])
  const asked: string[] = []
  const used: number[] = []
  const failing = {
    tokens: undefined as unknown,
    users: undefined as unknown,
    apiTokens: undefined as unknown,
  }
  const seen = { used, asked, errors: [] as unknown[], stored: 0 }
  const ring = (keys: (typeof key)[]) => ({
    current: () => keys[0] as typeof key,
    forAssertions: () => keys[0] as typeof key,
    getLoaded: (kid: string) => keys.find(each => each.kid === kid),
    find: async (kid: string) => keys.find(each => each.kid === kid),
    jwks: () => ({ keys: [] }),
    reload: async () => {},
  })
  const ttl = { accessTokenTtlMs: 900_000, refreshTokenTtlMs: 900_000, issuer: 'peage', audience: 'peage' }
  const tokens = createTokens({ keys: ring([key]), clock, ...ttl })
  const forger = createTokens({ keys: ring([foreign]), clock, ...ttl })

  const limiters = new Map<string, RateLimiter>()
  /** Those of one name share their counts, as they do in Redis. */
  const limiterOf: CreateRateLimiter = (name, limit) => {
    const limiter = limiters.get(name) ?? createRateLimiter(name, limit, { clock })
    limiters.set(name, limiter)
    return limiter
  }

  const authenticate = createAuthenticate({
    tokens: createTokenCache({ tokens, keys: ring([key]), clock, maxTokens: 100 }),
    users: createUserCache({
      users: {
        async findWithEpoch(id) {
          asked.push(`user ${id}`)
          if (failing.users !== undefined) throw failing.users
          return records.get(id)
        },
      },
      apiTokens: {
        async findActive(hash) {
          asked.push('key')
          if (failing.apiTokens !== undefined) throw failing.apiTokens
          return apiTokens.get(hash)
        },
      },
      feed,
      maxUsers: 100,
      results: counters.identityCache,
    }),
    sessions: followsSessions ? { isLive: (_, sessionId) => liveSessions.has(sessionId) } : undefined,
    lastUsed: { record: id => used.push(id) },
    badKeys: limiterOf('bad_keys', { limit: badKeys, windowMs: 60_000 }),
    onApiTokenError: error => seen.errors.push(error),
  })
  const days = new Map<string, number>()
  const counter = createDailyCounter({
    store: {
      count: async (userIds, day, limit) =>
        userIds.map(id => {
          const before = days.get(`${id} ${day}`) ?? 0
          if (!records.has(id)) return undefined
          if (before >= limit) return { counted: false, used: before }
          seen.stored += 1
          days.set(`${id} ${day}`, before + 1)
          return { counted: true, used: before + 1 }
        }),
      async read(id) {
        asked.push(`use ${id}`)
        const last = [...days.keys()].findLast(counted => counted.startsWith(`${id} `)) ?? ''
        return records.has(id)
          ? { daily_usage: days.get(last) ?? 0, last_usage_date: last.split(' ')[1] ?? '' }
          : undefined
      },
    },
    clock,
    dailyLimit,
    onFallback: () => {},
  })
  const spent = createExhaustedUsers({ feed, maxUsers: 100 })
  const dependencies = {
    authenticate,
    limitRate: createRateLimit(limiterOf),
    countDailyUse: createCountDailyUse({ counter, spent, limit: dailyLimit, clock }),
    decisions: counters.guards,
  }
  const target = { isAvailable: true, admitsClient: true }
  const upstream: CheckedUpstream = {
    isAvailable: () => target.isAvailable,
    endpointFor: () => (target.isAvailable && target.admitsClient ? ({} as Endpoint) : undefined),
    connectionLimit: { limit: 32, key: 'upstreams.courses.connections_per_client' },
  }
  const connections = { wait: (): Promise<void> | undefined => undefined, cancelled: 0 }
  const cancel = () => {
    connections.cancelled += 1
  }
  const reservation = {
    endpoint: { pool: { cancel } } as unknown as Endpoint,
    client: 0,
    connection: undefined,
  }

  interface Asking {
    headers?: Record<string, string>
    peer?: string
    isGone?: boolean
  }

  /** The request that the guards see, and what came of it. */
  function requestOf({ headers = {}, peer = '192.0.2.1', isGone = false }: Asking) {
    const received = aRequest([['Host', 'gw.test'], ...Object.entries(headers)], { peer })
    const told: string[] = []
    const added: Record<string, string>[] = []
    return {
      head: parseRequestHead(received, createTrustedProxies([])),
      trace: {
        onGuard: (name: string | undefined) => told.push(String(name)),
        onGuardFailed: (failure: string) => told.push(failure),
      },
      identity: anonymous as Identity,
      isGone: () => isGone,
      reserveConnection() {
        const waiting = connections.wait()
        return waiting === undefined ? reservation : waiting.then(() => reservation)
      },
      addHeaders: (more: Record<string, string>) => added.push(more),
      told,
      added,
    }
  }

  return {
    clock,
    feed,
    records,
    liveSessions,
    failing,
    seen,
    target,
    connections,
    guards: counters.guards,
    requestOf,
    addUser(id: number, plan: Plan = 'free', record: Partial<UserWithEpoch> = {}) {
      records.set(id, {
        ...{ id, email: `u${id}@example.com`, plan, is_active: 1, daily_usage: 0, last_usage_date: null },
        ...{ created_at: new Date(0), email_verified_at: null, session_epoch: 0 },
        ...record,
      })
    },
    addKey(text: string, apiTokenId: number, userId: number) {
      apiTokens.set(hashApiToken(text), { apiTokenId, userId })
    },
    tokenOf: (id: number, session = endless) =>
      tokens.issueAccess({ id, email: 'claimed@example.com', plan: 'pro' }, session),
    forgedToken: (id: number) => forger.issueAccess({ id, email: 'a@b.c', plan: 'pro' }, endless),
    /** Compiles the route's guards. */
    route: (declared: Partial<RouteConfig>) => compileGuards(routeWith(declared), upstream, dependencies),
    endpoint: (plans: readonly Plan[] | undefined) => compileEndpointGuards(plans, dependencies),
  }
}

/** What a decision says: who passed, or the status, code and named fields of the refusal. */
export function told(decision: ChainResult<{ allowed: true; identity: Identity }>) {
  if (decision.allowed) {
    const { identity } = decision
    return identity.kind === 'anonymous' ? 'anonymous' : `${identity.credential} of ${identity.user.id}`
  }
  return decision.thrown instanceof Refusal
    ? `${decision.thrown.status} ${decision.thrown.code}`
    : decision.thrown
}

export function fieldOf(
  decision: ChainResult<{ allowed: true; identity: Identity }>,
  name: string,
): string | undefined {
  if (decision.allowed || !(decision.thrown instanceof Refusal)) return undefined
  const { fields } = decision.thrown.response
  const at = fields.findIndex((field, index) => index % 2 === 0 && field === name)
  return at === -1 ? undefined : fields[at + 1]
}

export function bodyOf(decision: ChainResult<{ allowed: true; identity: Identity }>): unknown {
  if (decision.allowed || !(decision.thrown instanceof Refusal)) return undefined
  return JSON.parse(Buffer.from(decision.thrown.response.body, 'latin1').toString())
}
