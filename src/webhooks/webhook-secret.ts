// A webhook's secret as it is kept: sealed, where `auth.key_secret` is set, for its user alone.

import type { Column } from '../identity/sealed-column-store.ts'
import { isSealed, type Sealer } from '../identity/sealer.ts'

export interface WebhookSecrets {
  /** As it is to be stored. */
  seal(secret: string, userId: number): string
  /** As it is signed with; nothing where it was sealed under another `auth.key_secret`. */
  unseal(stored: string, userId: number): string | undefined
}

/** @param sealer nothing where `auth.key_secret` is not set */
export function createWebhookSecrets(sealer: Sealer | undefined): WebhookSecrets {
  return {
    seal: (secret, userId) => sealer?.seal(secret, contextOf(userId)) ?? secret,
    unseal: (stored, userId) => (isSealed(stored) ? sealer?.open(stored, contextOf(userId)) : stored),
  }
}

/** Where they stand; `peage keys reseal` goes through all of them. */
export const secretColumns: readonly Column[] = ['secret', 'secret_before'].map(column => ({
  table: 'webhooks',
  key: 'user_id',
  type: 'bigint',
  column,
  context: contextOf,
}))

function contextOf(userId: number | string): string {
  return `webhook of ${userId}`
}
