// Identity assertions: what an upstream can check for itself about who calls, with the public keys (CONTRACT §6).

import type { Clock } from '../../clock.ts'
import type { Plan } from '../../users/user.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import type { Tokens } from './tokens.ts'

export interface Assertions {
  /**
   * A token that says who calls, good for at least half a minute more.
   * @param upstream its name, the audience
   */
  tokenFor(user: { id: number; plan: Plan }, upstream: string): Promise<string>
}

interface Dependencies {
  tokens: Pick<Tokens, 'issueAssertion'>
  keys: Pick<SigningKeys, 'forAssertions'>
  clock: Clock
}

/** A signature costs more than the rest of the gate: one serves all that a user asks of an upstream in half a minute. */
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
      // Behind the younger ones: the oldest make room.
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

/** Milliseconds; an assertion is good for a minute, so that half of it is left for the upstream. */
const reuseMs = 30_000

const maxRemembered = 10_000
