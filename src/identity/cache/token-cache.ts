// Caches verified access tokens until they expire or their signing key is removed (CONTRACT §3).
import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { TokenProblem, Tokens, VerifiedToken } from '../tokens/tokens.ts'

export interface TokenCache {
  /** A cached token that is still valid. */
  get(token: string): VerifiedToken | undefined
  /**
   * Returns a cached token synchronously; concurrent callers share one verification per token.
   * @throws StorageError as `Tokens.verifyAccess`
   */
  verify(token: string): MaybePromise<VerifiedToken | TokenProblem>
}

interface Dependencies {
  tokens: Pick<Tokens, 'verifyAccess'>
  keys: Pick<SigningKeys, 'getLoaded'>
  clock: Clock
  /** A token is 4 KiB at most; the least recently used one is evicted first. */
  maxTokens: number
}

/** Caches valid tokens only. The key is the full text: no other text can hit another token's entry. */
export function createTokenCache({ tokens, keys, clock, maxTokens }: Dependencies): TokenCache {
  const cached = new LRUCache<string, VerifiedToken>({ max: maxTokens })
  /** Running verifications: never more than there are requests. */
  const inFlight = new Map<string, Promise<VerifiedToken | TokenProblem>>()

  /** What has become of a token since it was verified. */
  const problemOf = ({ expiresAtMs, kid }: VerifiedToken): TokenProblem | undefined => {
    if (clock.now() >= expiresAtMs) return 'expired'
    return keys.getLoaded(kid) === undefined ? 'key_unknown' : undefined
  }

  async function verifyUncached(token: string): Promise<VerifiedToken | TokenProblem> {
    try {
      const verified = await tokens.verifyAccess(token)
      if (typeof verified === 'string') return verified
      // Checks again: a caller may have joined after the token expired or its key was removed.
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
