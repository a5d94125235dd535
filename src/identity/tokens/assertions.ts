// Issues identity assertions: signed statements about the caller, which upstreams verify with the JWKS.
import type { Clock } from '../../clock.ts'
import type { Plan } from '../../users/user.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Tokens } from './tokens.ts'

export interface Assertions {
  /**
   * Returns a token that is valid for at least another 30 s.
   * @param upstream the name of the upstream, which becomes the audience
   */
  tokenFor(user: { id: number; plan: Plan }, upstream: string): Promise<string>
}

interface Dependencies {
  tokens: Pick<Tokens, 'issueAssertion'>
  keys: Pick<SigningKeys, 'forAssertions'>
  clock: Clock
}

/** A signature costs more than the rest of the gate, so a user's requests to an upstream share one token for 30 s. */
export function createAssertions({ tokens, keys, clock }: Dependencies): Assertions {
  const remembered = new Map<string, { token: Promise<string>; at: number }>()
  return {
    tokenFor({ id, plan }, upstream) {
      const key = `${keys.forAssertions().kid} ${upstream} ${plan} ${id}`
      const entry = remembered.get(key)
      const now = clock.now()
      const ageMs = entry === undefined ? Number.POSITIVE_INFINITY : now - entry.at
      if (entry !== undefined && ageMs >= 0 && ageMs < reuseMs) return entry.token
      const token = tokens.issueAssertion({ id, plan }, upstream)
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
