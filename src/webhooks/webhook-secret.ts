// Seals a webhook's secret for its user, if `auth.key_secret` is set.

import type { Column } from '../identity/sealed-column-store.ts'
import { isSealed, type Sealer } from '../identity/sealer.ts'

export interface WebhookSecrets {
  /** The form to store. */
  seal(secret: string, userId: number): string
  /** The form to sign with; undefined if it was sealed under another `auth.key_secret`. */
  unseal(stored: string, userId: number): string | undefined
}

/** @param sealer undefined unless `auth.key_secret` is set */
export function createWebhookSecrets(sealer: Sealer | undefined): WebhookSecrets {
  return {
    seal: (secret, userId) => sealer?.seal(secret, contextOf(userId)) ?? secret,
    unseal: (stored, userId) => (isSealed(stored) ? sealer?.open(stored, contextOf(userId)) : stored),
  }
}

/** The columns of the secrets; `peage keys reseal` reseals them all. */
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
