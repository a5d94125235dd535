// A webhook's secret as it is kept: sealed, where `auth.key_secret` is set, for its user alone.

import type { Column } from '../identity/sealed-column-store.ts'
import { isSealed, type Sealer } from '../identity/sealer.ts'

export interface Secrets {
  /** As it is to be stored. */
  keep(secret: string, userId: number): string
  /** As it is signed with; nothing where it was sealed under another `auth.key_secret`. */
  read(kept: string, userId: number): string | undefined
}

/** @param sealer nothing where `auth.key_secret` is not set */
export function createSecrets(sealer: Sealer | undefined): Secrets {
  return {
    keep: (secret, userId) => sealer?.seal(secret, contextOf(userId)) ?? secret,
    read: (kept, userId) => (isSealed(kept) ? sealer?.open(kept, contextOf(userId)) : kept),
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
