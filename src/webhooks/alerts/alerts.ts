// Alerts as downstream services emit them: stored with a delivery for each receiver, then sent behind the answer (CONTRACT §7).

import type { Clock } from '../../clock.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { AlertStore } from './alert-store.ts'

export interface NewAlert {
  type: string
  /** Any JSON value. */
  data: unknown
  /** Nothing for every active pro user. */
  userId: number | undefined
}

export interface Alerts {
  /**
   * @param alongside stored with the alert
   * @returns how many deliveries were queued; `user_unknown` where there is no such user
   * @throws Refusal `request_invalid` where the data is nested too deep to be written; StorageError
   */
  emit(alert: NewAlert, inTransaction: TransactionStep): Promise<number | 'user_unknown'>
}

interface Dependencies {
  store: Pick<AlertStore, 'queue'>
  clock: Clock
  newId(): string
  /** Told as soon as there is something to deliver. */
  onQueued(): void
}

export function createAlerts({ store, clock, newId, onQueued }: Dependencies): Alerts {
  return {
    async emit({ type, data, userId }, inTransaction) {
      const now = new Date(clock.now())
      const body = serialize({ type, timestamp: now.toISOString(), data })
      const queued = await store.queue({ id: newId(), type, body }, userId, now, inTransaction)
      if (queued !== 'user_unknown' && queued > 0) onQueued()
      return queued
    },
  }
}

/** What was parsed may still be too deep: `JSON.stringify` runs out of stack long before `JSON.parse`. */
function serialize(body: object): string {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    throw new Refusal('request_invalid', { cause })
  }
}
