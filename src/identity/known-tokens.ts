// Access tokens that were found good, remembered until they expire or their key goes (CONTRACT §3).
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Soon } from './at-once.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens, VerifiedToken } from './tokens.ts'

export interface KnownTokens {
  /** At once where it is remembered. @throws StorageError as `Tokens.verifyAccess` */
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

  async function look(token: string): Promise<VerifiedToken | 'invalid'> {
    const verified = await tokens.verifyAccess(token)
    if (verified !== 'invalid') known.set(token, verified)
    return verified
  }

  return {
    verify(token) {
      const verified = known.get(token)
      if (verified === undefined) return look(token)
      if (clock.now() < verified.expiresAt && keys.known(verified.kid) !== undefined) return verified
      known.delete(token)
      return look(token)
    },
  }
}
