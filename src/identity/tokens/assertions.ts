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
  for(user: { id: number; plan: Plan }, upstream: string): Promise<string>
}

interface Parts {
  tokens: Pick<Tokens, 'issueAssertion'>
  keys: Pick<SigningKeys, 'forAssertions'>
  clock: Clock
}

/** A signature costs more than the rest of the gate: one serves all that a user asks of an upstream in half a minute. */
export function createAssertions({ tokens, keys, clock }: Parts): Assertions {
  const remembered = new Map<string, { token: Promise<string>; at: number }>()
  return {
    for({ id, plan }, upstream) {
      const key = `${keys.forAssertions().kid} ${upstream} ${plan} ${id}`
      const known = remembered.get(key)
      const now = clock.now()
      const age = known === undefined ? Number.POSITIVE_INFINITY : now - known.at
      if (known !== undefined && age >= 0 && age < remember) return known.token
      const token = tokens.issueAssertion({ id, plan }, upstream)
      // Behind the younger ones: the oldest make room.
      remembered.delete(key)
      if (remembered.size >= mostRemembered) remembered.delete(remembered.keys().next().value as string)
      remembered.set(key, { token, at: now })
      token.catch(() => {
        if (remembered.get(key)?.token === token) remembered.delete(key)
      })
      return token
    },
  }
}

/** Milliseconds; an assertion is good for a minute, so that half of it is left for the upstream. */
const remember = 30_000

const mostRemembered = 10_000
