// Caches verified access tokens until they expire or their signing key is removed.
import { createLru } from '../../async/lru.ts'
import type { MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { TokenProblem, Tokens, VerifiedToken } from '../tokens/tokens.ts'

export interface TokenCache {
  /** Returns a cached token that is still valid. */
  get(token: string): VerifiedToken | undefined
  /**
   * Returns a cached token synchronously. Concurrent callers share one verification per token.
   * @throws StorageError under the same conditions as `Tokens.verifyAccess`
   */
  verify(token: string): MaybePromise<VerifiedToken | TokenProblem>
}

interface Dependencies {
  tokens: Pick<Tokens, 'verifyAccess'>
  keys: Pick<SigningKeys, 'getLoaded'>
  clock: Clock
  /**
   * The maximum number of tokens, each with at most 4 KiB. When the cache is full, it removes the least recently used
   * token.
   */
  maxTokens: number
}

/** Caches only valid tokens. The key of an entry is the whole token, so that no other text can match the entry. */
export function createTokenCache({ tokens, keys, clock, maxTokens }: Dependencies): TokenCache {
  const cached = createLru<string, VerifiedToken>(maxTokens)
  /** Running verifications. Their number is limited by the number of requests. */
  const inFlight = new Map<string, Promise<VerifiedToken | TokenProblem>>()

  /** Returns why a verified token is no longer valid; undefined if the token is still valid. */
  const problemOf = ({ expiresAtMs, kid }: VerifiedToken): TokenProblem | undefined => {
    if (clock.now() >= expiresAtMs) return 'expired'
    return keys.getLoaded(kid) === undefined ? 'key_unknown' : undefined
  }

  async function verifyUncached(token: string): Promise<VerifiedToken | TokenProblem> {
    try {
      const verified = await tokens.verifyAccess(token)
      if (typeof verified === 'string') return verified
      // Checks the token again, because a caller may have joined the verification after the token expired or its key
      // was removed.
      const problem = problemOf(verified)
      if (problem !== undefined) return problem
      cached.set(token, verified)
      return verified
    } finally {
      inFlight.delete(token)
    }
  }

  function get(token: string): VerifiedToken | undefined {
    const verified = cached.get(token)
    if (verified === undefined || problemOf(verified) === undefined) return verified
    cached.delete(token)
    return undefined
  }

  return {
    get,
    verify(token) {
      const verified = get(token)
      if (verified !== undefined) return verified
      const running = inFlight.get(token) ?? verifyUncached(token)
      inFlight.set(token, running)
      return running
    },
  }
}
