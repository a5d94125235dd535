// What the guards of one configuration ask: the keys, what is remembered, and the stores behind.

import type { Config } from '../config/schema/schema.ts'
import type { Asked } from '../gate/gate.ts'
import { createKnownTokens } from '../identity/cache/token-cache.ts'
import { createKnownUsers } from '../identity/cache/user-cache.ts'
import { createKeyStore } from '../identity/keys/key-store.ts'
import { watchKeys } from '../identity/keys/key-watch.ts'
import type { KeyError } from '../identity/keys/signing-key.ts'
import { openSigningKeys, readSigningKeys, type SigningKeys } from '../identity/keys/signing-keys.ts'
import { type Assertions, createAssertions } from '../identity/tokens/assertions.ts'
import { createTokens, type Tokens } from '../identity/tokens/tokens.ts'
import { type CreateLimiter, createLimiters, type Limiters } from '../storage/rate-limiter.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { createSpentMemory } from '../usage/exhausted-users.ts'
import { createFastCount } from '../usage/usage-hint.ts'
import { createUsageStore } from '../usage/usage-store.ts'
import type { Lasting } from './process-services.ts'
import type { Keep, Kept } from './resources.ts'

export interface OpenAsked {
  readonly asked: Asked
  readonly assertions: Assertions
  readonly keys: SigningKeys
  readonly tokens: Tokens
  readonly limiters: Limiters
}

/** @throws KeyError where the signing keys cannot be read */
export async function openAsked(config: Config, lasting: Lasting, keep: Keep): Promise<OpenAsked> {
  const { auth, limits } = config
  const { feed, clock, logger } = lasting
  const { tallies } = lasting.metrics
  const { database, keyValue } = lasting.backing
  const { keys, name: keysName } = await openKeys(auth.keys, lasting, keep)
  const tokens = createTokens({
    keys,
    clock,
    issuer: auth.issuer,
    audience: auth.audience,
    accessTokenTtl: auth.access_token_ttl,
    refreshTokenTtl: auth.refresh_token_ttl,
  })
  // Places that are taken stay taken where the limit stays what it is.
  const createLimiter: CreateLimiter = (name, limit) =>
    keep(`limit ${name} ${JSON.stringify(limit)}`, () => ({
      part: lasting.backing.createLimiter(name, limit),
    }))
  const limiters = createLimiters(auth.rate_limits, createLimiter)
  // What was verified for another audience, or by a key that is gone, counts no more.
  const verified = JSON.stringify([auth.issuer, auth.audience, keysName])
  const most = auth.remember
  const identity = {
    tokens: keep(`tokens ${verified} ${most.tokens}`, () => ({
      part: createKnownTokens({ tokens, keys, clock, most: most.tokens }),
    })),
    users: keep(`users ${most.users}`, () => {
      const { users, apiTokens } = lasting
      const results = tallies.identityCache
      const part = createKnownUsers({ users, apiTokens, feed, most: most.users, results })
      return { part, close: part.close }
    }),
    lastUsed: lasting.lastUsed,
    badKeys: limiters.bad_keys,
    onKeyFault: (error: unknown) => lasting.failureLog('a key could not be checked', error),
  }
  const counter = keep(`counter ${limits.free_daily}`, () => {
    const part = createDailyCounter({
      store: createUsageStore(database),
      fast: keyValue && createFastCount(keyValue),
      clock,
      limit: limits.free_daily,
      onFallback(error) {
        tallies.dailyUsageFallbacks += 1
        logger.debug({ err: error }, 'daily use counted without Redis')
      },
    })
    return { part, close: feed.subscribe(part.onChange, part.onChange) }
  })
  const memory = keep(`spent ${most.users}`, () => {
    const part = createSpentMemory({ feed, most: most.users })
    return { part, close: part.close }
  })
  const spent = keep(`spent ${most.users} by ${limits.free_daily}`, () => ({ part: memory.forLimit() }))
  const assertions = keep(`assertions ${verified}`, () => ({
    part: createAssertions({ tokens, keys, clock }),
  }))
  return { asked: { identity, createLimiter, counter, spent }, assertions, keys, tokens, limiters }
}

/**
 * From files where `auth.keys` names some, else those that the replicas share in the database.
 * @returns them with a name that other keys have not
 */
async function openKeys(
  files: readonly string[],
  lasting: Lasting,
  keep: Keep,
): Promise<{ keys: SigningKeys; name: string }> {
  if (files.length === 0) {
    const name = 'stored keys'
    return { keys: await keep(name, () => openStoredKeys(lasting)), name }
  }
  const read = await readSigningKeys(files)
  const name = `keys ${JSON.stringify(read.jwks())}`
  return { keys: keep(name, () => ({ part: read })), name }
}

function openStoredKeys({ backing, sealer, clock, logger, feed }: Lasting): Kept<Promise<SigningKeys>> {
  const onError = (error: KeyError) => logger.error({ err: error }, 'the stored signing keys cannot be read')
  let stop = () => {}
  const store = createKeyStore(backing.database)
  const part = openSigningKeys({ store, sealer, clock, onError }).then(keys => {
    stop = watchKeys({ keys, feed, onError })
    return keys
  })
  return { part, close: () => part.catch(() => {}).then(() => stop()) }
}
