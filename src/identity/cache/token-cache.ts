// Access tokens that were found good, remembered until they expire or their key goes (CONTRACT §3).
import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Tokens, VerifiedToken } from '../tokens/tokens.ts'

export interface TokenCache {
  /** A token that is remembered, and good still. */
  get(token: string): VerifiedToken | undefined
  /**
   * At once where it is remembered; of one token at most one verification is under way.
   * @throws StorageError as `Tokens.verifyAccess`
   */
  verify(token: string): MaybePromise<VerifiedToken | 'invalid'>
}

interface Dependencies {
  tokens: Pick<Tokens, 'verifyAccess'>
  keys: Pick<SigningKeys, 'getLoaded'>
  clock: Clock
  /** Tokens at most, of 4 KiB at most; the least recently used goes first. */
  maxTokens: number
}

/** Only good ones are remembered, by their whole text: nobody can make another text stand for one. */
export function createTokenCache({ tokens, keys, clock, maxTokens }: Dependencies): TokenCache {
  const verifiedTokens = new LRUCache<string, VerifiedToken>({ max: maxTokens })
  /** What requests wait for now: never more than there are requests. */
  const inFlight = new Map<string, Promise<VerifiedToken | 'invalid'>>()

  const isValid = ({ expiresAtMs, kid }: VerifiedToken) =>
    clock.now() < expiresAtMs && keys.getLoaded(kid) !== undefined

  async function verifyUncached(token: string): Promise<VerifiedToken | 'invalid'> {
    try {
      const verified = await tokens.verifyAccess(token)
      // Again: who joined on the way may have come when it had expired, or when its key had gone.
      if (verified === 'invalid' || !isValid(verified)) return 'invalid'
      verifiedTokens.set(token, verified)
      return verified
    } finally {
      inFlight.delete(token)
    }
  }

  function get(token: string): VerifiedToken | undefined {
    const verified = verifiedTokens.get(token)
    if (verified === undefined || isValid(verified)) return verified
    verifiedTokens.delete(token)
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
