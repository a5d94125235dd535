// What the guards of a running gateway ask: what is remembered, what tells that it changed, and the stores behind.
import type { Logger } from 'pino'
import type { UserStore } from '../accounts/user-store.ts'
import { type ChangeFeed, createChangeFeed } from '../backing/change-feed.ts'
import type { Backing } from '../backing/open.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { ApiTokenStore } from '../identity/api-token-store.ts'
import { createAssertions } from '../identity/assertions.ts'
import { createKnownTokens } from '../identity/known-tokens.ts'
import { createKnownUsers } from '../identity/known-users.ts'
import type { LastUsed } from '../identity/last-used.ts'
import type { SigningKeys } from '../identity/signing-keys.ts'
import type { Tokens } from '../identity/tokens.ts'
import type { Tallies } from '../metrics/tallies.ts'
import { createDailyCounter } from '../usage/daily-counter.ts'
import { createFastCount } from '../usage/fast-count.ts'
import { createSpentUsers } from '../usage/spent-users.ts'
import { createUsageStore } from '../usage/usage-store.ts'
import type { Asked } from './gate.ts'

export interface OpenAsked {
  readonly asked: Asked
  /** The caller's to close. */
  readonly feed: ChangeFeed
}

interface Parts {
  config: Config
  backing: Backing
  clock: Clock
  logger: Logger
  tallies: Pick<Tallies, 'identityCache' | 'dailyUsageFallbacks'>
  tokens: Tokens
  keys: SigningKeys
  users: UserStore
  apiTokens: ApiTokenStore
  lastUsed: LastUsed
}

export function openAsked(parts: Parts): OpenAsked {
  const { config, backing, clock, logger, tallies, tokens, keys } = parts
  const { database, limiters } = backing
  const feed = createChangeFeed({
    listen: backing.listen,
    database,
    now: () => performance.now(),
    onState: state =>
      state === 'lost'
        ? logger.warn({}, 'changes are not heard: users and keys are read for every request')
        : logger.info({}, 'changes are heard again'),
  })
  const { users: mostUsers, tokens: mostTokens } = config.auth.remember
  const identity = {
    tokens: createKnownTokens({ tokens, keys, clock, most: mostTokens }),
    users: createKnownUsers({
      users: parts.users,
      apiTokens: parts.apiTokens,
      feed,
      most: mostUsers,
      results: tallies.identityCache,
    }),
    lastUsed: parts.lastUsed,
    badKeys: limiters.bad_keys,
    onKeyFault: (error: unknown) => logger.warn({ err: error }, 'a key could not be checked'),
  }
  const counter = createDailyCounter({
    store: createUsageStore(database),
    fast: backing.keyValue && createFastCount(backing.keyValue),
    clock,
    limit: config.limits.free_daily,
    onFallback(error) {
      tallies.dailyUsageFallbacks += 1
      logger.debug({ err: error }, 'daily use counted without Redis')
    },
  })
  feed.subscribe(counter.onChange, counter.onChange)
  return {
    asked: {
      identity,
      createLimiter: backing.createLimiter,
      counter,
      spent: createSpentUsers({ feed, most: mostUsers }),
      assertions: createAssertions({ tokens, keys, clock }),
    },
    feed,
  }
}
