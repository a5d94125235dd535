// Opens everything that the guards of one configuration need: signing keys, caches, rate limiters, and stores.
import type { Config } from '../config/sections/schema.ts'
import type { GuardDependencies } from '../gate/gate.ts'
import { createSessionCache, type SessionCache } from '../identity/cache/session-cache.ts'
import { createTokenCache } from '../identity/cache/token-cache.ts'
import { createUserCache } from '../identity/cache/user-cache.ts'
import type { KeyError } from '../identity/keys/signing-key.ts'
import {
  openSigningKeys,
  readSigningKeys,
  type SigningKeys,
  watchKeys,
} from '../identity/keys/signing-keys.ts'
import { type Assertions, createAssertions } from '../identity/tokens/assertions.ts'
import { createTokens, type Tokens } from '../identity/tokens/tokens.ts'
import { type CreateRateLimiter, createRateLimiters, type RateLimiters } from '../storage/rate-limiter.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { createExhaustedQuotas } from '../usage/exhausted-quotas.ts'
import { createExhaustedUsers } from '../usage/exhausted-users.ts'
import { createUsageHint } from '../usage/usage-hint.ts'
import type { ServingProcess } from './process.ts'
import type { Resource, ResourceScope } from './snapshot-resources.ts'

interface OpenGuardDependencies {
  readonly guardDependencies: GuardDependencies
  readonly assertions: Assertions
  readonly keys: SigningKeys
  readonly tokens: Tokens
  readonly limiters: RateLimiters
}

/** @throws KeyError if the signing keys cannot be read */
export async function createGuardDependencies(
  config: Config,
  serving: ServingProcess,
  resources: ResourceScope,
): Promise<OpenGuardDependencies> {
  const { auth, limits } = config
  const { kinds, getOrCreate } = resources
  const { feed, clock, logger } = serving
  const { counters } = serving.metrics
  const { scriptRunner } = serving.storage
  const { keys, name: keysName } = await openKeys(auth.keys, serving, resources)
  const tokens = createTokens({
    keys,
    clock,
    issuer: auth.issuer,
    audience: auth.audience,
    accessTokenTtlMs: auth.access_token_ttl,
    refreshTokenTtlMs: auth.refresh_token_ttl,
  })
  // If a reload does not change a limit, its counts are kept.
  const createRateLimiter: CreateRateLimiter = (name, limit) =>
    getOrCreate(kinds.rateLimiters, `${name} ${JSON.stringify(limit)}`, () => ({
      value: serving.storage.createRateLimiter(name, limit),
    }))
  const limiters = createRateLimiters(auth.rate_limits, createRateLimiter)
  // The token cache contains verified tokens. A change of the issuer, the audience or the keys makes these tokens
  // invalid. So the cache is reused only if none of the three changes.
  const verified = JSON.stringify([auth.issuer, auth.audience, keysName])
  const { remember } = auth
  const identity = {
    tokens: getOrCreate(kinds.tokenCaches, `${verified} ${remember.tokens}`, () => ({
      value: createTokenCache({ tokens, keys, clock, maxTokens: remember.tokens }),
    })),
    users: getOrCreate(kinds.userCaches, `${remember.users}`, () => {
      const { users, apiKeys } = serving.stores
      const results = counters.identityCache
      const value = createUserCache({ users, apiKeys, feed, maxUsers: remember.users, results })
      return { value, close: value.close }
    }),
    sessions: auth.logout_ends_access ? openSessionCache(remember.tokens, serving, resources) : undefined,
    lastUsed: serving.lastUsed,
    badKeys: limiters.bad_keys,
    onApiKeyError: (error: unknown) => serving.failureLog('API key check failed', error),
    clock,
  }
  const counter = getOrCreate(kinds.dailyCounters, `${limits.free_daily}`, () => {
    const value = createDailyCounter({
      store: serving.stores.usage,
      usageHint: scriptRunner && createUsageHint(scriptRunner),
      clock,
      dailyLimit: limits.free_daily,
      onFallback(error) {
        counters.dailyUsageFallbacks += 1
        logger.debug({ err: error }, 'daily use counted without Redis')
      },
    })
    return { value, close: feed.subscribe(value.onChange, value.onChange) }
  })
  const exhausted = getOrCreate(kinds.exhaustedUsers, `${remember.users} by ${limits.free_daily}`, () => {
    const value = createExhaustedUsers({ feed, maxUsers: remember.users })
    return { value, close: value.close }
  })
  const exhaustedQuotas = getOrCreate(kinds.exhaustedQuotas, `${remember.users}`, () => {
    const value = createExhaustedQuotas({ feed, maxPairs: remember.users })
    return { value, close: value.close }
  })
  const assertions = getOrCreate(kinds.assertions, verified, () => ({
    value: createAssertions({ tokens, keys, clock }),
  }))
  return {
    guardDependencies: {
      identity,
      createRateLimiter,
      counter,
      exhausted,
      quotas: serving.stores.quotas,
      exhaustedQuotas,
    },
    assertions,
    keys,
    tokens,
    limiters,
  }
}

/**
 * @param maxSessions the value of `auth.remember.tokens`; more sessions are not needed, because each remembered token
 *   belongs to one session
 */
function openSessionCache(
  maxSessions: number,
  { stores, pendingRevocations: { isEnding }, feed, clock, metrics }: ServingProcess,
  { kinds, getOrCreate }: ResourceScope,
): SessionCache {
  return getOrCreate(kinds.sessionCaches, `${maxSessions}`, () => {
    const value = createSessionCache({
      async read(userId, sessionId) {
        const active = await stores.sessions.findActive([{ userId, sessionId }], new Date(clock.now()))
        return active.get(sessionId)
      },
      isEnding,
      feed,
      clock,
      maxSessions,
      results: metrics.counters.identityCache,
    })
    return { value, close: value.close }
  })
}

/**
 * Opens the signing keys in the files. Without files, opens the keys in the database, which all replicas share.
 * @returns the keys, with a name that identifies this set of keys
 */
async function openKeys(
  files: readonly string[],
  serving: ServingProcess,
  { kinds, getOrCreate }: ResourceScope,
): Promise<{ keys: SigningKeys; name: string }> {
  const read = files.length === 0 ? undefined : readSigningKeys(files)
  const name = read === undefined ? 'stored' : JSON.stringify((await read).jwks())
  const make = () => (read === undefined ? openStoredKeys(serving) : { value: read })
  return { keys: await getOrCreate(kinds.signingKeys, name, make), name }
}

function openStoredKeys({
  stores,
  sealer,
  clock,
  logger,
  feed,
}: ServingProcess): Resource<Promise<SigningKeys>> {
  const onError = (error: KeyError) => logger.error({ err: error }, 'stored signing keys cannot be read')
  let stop = () => {}
  const value = openSigningKeys({ store: stores.signingKeys, sealer, clock, onError }).then(keys => {
    stop = watchKeys({ keys, feed, onError })
    return keys
  })
  return { value, close: () => value.catch(() => {}).then(() => stop()) }
}
