// Issues identity assertions: signed statements about the caller, which upstreams verify with the JWKS.
import type { Clock } from '../../clock.ts'
import { type AuthenticatedUser, namedKeyOf } from '../identity.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Tokens } from './tokens.ts'

export interface Assertions {
  /**
   * Returns a token that is valid for at least another 30 s.
   * @param upstream the name of the upstream, which becomes the audience
   */
  tokenFor(caller: AuthenticatedUser, upstream: string): Promise<string>
}

interface Dependencies {
  tokens: Pick<Tokens, 'issueAssertion'>
  keys: Pick<SigningKeys, 'forAssertions'>
  clock: Clock
}

/**
 * A signature takes more time than the rest of the gate. So for 30 s, an upstream receives the same assertion for all
 * requests of one API key, and for all requests of a user with access tokens.
 */
export function createAssertions({ tokens, keys, clock }: Dependencies): Assertions {
  const remembered = new Map<string, { token: Promise<string>; at: number }>()
  return {
    tokenFor(caller, upstream) {
      const { user, apiKey } = caller
      // Access tokens of one user share assertions, because assertions contain nothing about the access token.
      // `*` is not a scope, so a key without a limit differs from every key with scopes.
      const credential = apiKey === undefined ? '' : `${apiKey.id} ${apiKey.scopes ?? '*'}`
      const key = `${keys.forAssertions().kid} ${upstream} ${user.plan} ${user.id} ${credential}`
      const entry = remembered.get(key)
      const now = clock.now()
      const ageMs = entry === undefined ? Number.POSITIVE_INFINITY : now - entry.at
      if (entry !== undefined && ageMs >= 0 && ageMs < reuseMs) return entry.token
      const token = tokens.issueAssertion(user, upstream, namedKeyOf(caller))
      // Moves the entry to the end, because the oldest entries are removed first.
      remembered.delete(key)
      if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value as string)
      remembered.set(key, { token, at: now })
      token.catch(() => {
        if (remembered.get(key)?.token === token) remembered.delete(key)
      })
      return token
    },
  }
}

const reuseMs = 30_000

const maxRemembered = 10_000
