// Access tokens that were found good, remembered until they expire or their key goes (CONTRACT §3).
import { LRUCache } from 'lru-cache'
import type { Soon } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Tokens, VerifiedToken } from '../tokens/tokens.ts'

export interface KnownTokens {
  /** A token that is remembered, and good still. */
  recall(token: string): VerifiedToken | undefined
  /**
   * At once where it is remembered; of one token at most one verification is under way.
   * @throws StorageError as `Tokens.verifyAccess`
   */
  verify(token: string): Soon<VerifiedToken | 'invalid'>
}

interface Parts {
  tokens: Pick<Tokens, 'verifyAccess'>
  keys: Pick<SigningKeys, 'known'>
  clock: Clock
  /** Tokens at most, of 4 KiB at most; the least recently used goes first. */
  most: number
}

/** Only good ones are remembered, by their whole text: nobody can make another text stand for one. */
export function createKnownTokens({ tokens, keys, clock, most }: Parts): KnownTokens {
  const known = new LRUCache<string, VerifiedToken>({ max: most })
  /** What requests wait for now: never more than there are requests. */
  const inFlight = new Map<string, Promise<VerifiedToken | 'invalid'>>()

  const isGood = ({ expiresAt, kid }: VerifiedToken) =>
    clock.now() < expiresAt && keys.known(kid) !== undefined

  async function look(token: string): Promise<VerifiedToken | 'invalid'> {
    try {
      const verified = await tokens.verifyAccess(token)
      // Again: who joined on the way may have come when it had expired, or when its key had gone.
      if (verified === 'invalid' || !isGood(verified)) return 'invalid'
      known.set(token, verified)
      return verified
    } finally {
      inFlight.delete(token)
    }
  }

  function recall(token: string): VerifiedToken | undefined {
    const verified = known.get(token)
    if (verified === undefined || isGood(verified)) return verified
    known.delete(token)
    return undefined
  }

  return {
    recall,
    verify(token) {
      const verified = recall(token)
      if (verified !== undefined) return verified
      const running = inFlight.get(token) ?? look(token)
      inFlight.set(token, running)
      return running
    },
  }
}
