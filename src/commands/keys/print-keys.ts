// Formats signing keys as aligned text or as JSON, without their private parts.
import type { KeyInfo } from '../../identity/keys/key-administration.ts'
import type { Resealed } from '../../identity/resealing.ts'
import { createTable } from '../print.ts'

export interface ListedKey extends Omit<KeyInfo, 'createdAt'> {
  /** `null` if the key is in a file. */
  readonly createdAt: Date | null
  /** The place of the key: `database`, or the name of its file. */
  readonly storedIn: string
}

export function keysAsJson(keys: readonly ListedKey[]): string {
  const listed = keys.map(key => ({
    kid: key.kid,
    alg: key.alg,
    state: key.state,
    created_at: key.createdAt,
    signs_from: key.signsFrom,
    signs_assertions: key.signsAssertions,
    spent_from: key.retirableFrom,
    kept_in: key.storedIn,
  }))
  return `${JSON.stringify({ keys: listed })}\n`
}

export function keysAsTable(keys: readonly ListedKey[]): string {
  if (keys.length === 0) return 'no keys\n'
  const layOut = createTable(['KID', 'ALG', 'CREATED', 'RETIRABLE FROM', 'STORED IN', 'STATE'])
  return layOut(
    keys.map(key => [
      key.kid,
      key.alg,
      dateOf(key.createdAt),
      dateOf(key.signsFrom && key.retirableFrom),
      key.storedIn,
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

export function resealedAsJson(keys: Resealed, webhooks: Resealed): string {
  // `webhooks.unreadable` contains the ids of users as texts. The JSON contains them as numbers.
  const webhook_secrets = { ...webhooks, unreadable: webhooks.unreadable.map(Number) }
  return `${JSON.stringify({ signing_keys: keys, webhook_secrets })}\n`
}

export function resealedAsText(keys: Resealed, webhooks: Resealed): string {
  return `signing keys: ${countsOf(keys)}\nwebhook secrets: ${countsOf(webhooks)}\n`
}

function countsOf({ resealed, already, unreadable }: Resealed): string {
  const unread = unreadable.length === 0 ? '' : `, ${unreadable.length} could not be decrypted`
  return `${resealed} re-encrypted, ${already} already encrypted with auth.key_secret${unread}`
}
