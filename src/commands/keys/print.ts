// Shows signing keys, never a private part of one: aligned text for people, JSON for machines.
import type { KeyFacts } from '../../identity/key-administration.ts'
import { createTable } from '../print.ts'

export interface ListedKey extends Omit<KeyFacts, 'createdAt'> {
  /** `null` where it is in a file. */
  readonly createdAt: Date | null
  /** `database`, or the file. */
  readonly keptIn: string
}

export function keysAsJson(keys: readonly ListedKey[]): string {
  const listed = keys.map(key => ({
    kid: key.kid,
    alg: key.alg,
    state: key.state,
    created_at: key.createdAt,
    signs_from: key.signsFrom,
    signs_assertions: key.signsAssertions,
    spent_from: key.spentFrom,
    kept_in: key.keptIn,
  }))
  return `${JSON.stringify({ keys: listed })}\n`
}

export function keysAsTable(keys: readonly ListedKey[]): string {
  if (keys.length === 0) return 'no keys\n'
  const layOut = createTable(['KID', 'ALG', 'CREATED', 'SPENT FROM', 'KEPT IN', 'STATE'])
  return layOut(
    keys.map(key => [
      key.kid,
      key.alg,
      dateOf(key.createdAt),
      dateOf(key.signsFrom && key.spentFrom),
      key.keptIn,
      stateOf(key),
    ]),
  )
}

function stateOf({ state, signsFrom, signsAssertions }: ListedKey): string {
  if (state === 'signs') return 'signs'
  const own = state === 'will_sign' ? `signs from ${signsFrom?.toISOString()}` : 'verifies'
  return signsAssertions ? `${own}, still signs assertions` : own
}

function dateOf(date: Date | null): string {
  return date === null ? '-' : date.toISOString()
}
