// Emits the alerts that downstream services request. An alert is stored with one delivery per receiver, and sent in the
// background.
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { AlertStore } from './alert-store.ts'

interface NewAlert {
  type: string
  /** Any JSON value, including `null`. Undefined is sent as `{}`. */
  data: unknown
  /** The user who receives the alert; undefined for every active user whose plan has webhooks. */
  userId: number | undefined
}

export interface Alerts {
  /**
   * @returns how many deliveries were queued; `user_unknown` if the user does not exist
   * @throws Refusal `request_invalid` if the data is nested too deeply to serialize
   * @throws StorageError
   */
  emit(alert: NewAlert, inTransaction: TransactionStep): Promise<number | 'user_unknown'>
}

/** @param onQueued called when deliveries are queued */
export function createAlerts(store: AlertStore, clock: Clock, onQueued: () => void): Alerts {
  return {
    async emit({ type, data = {}, userId }, inTransaction) {
      const now = new Date(clock.now())
      const body = serialize({ type, timestamp: now.toISOString(), data })
      const queued = await store.queue({ id: randomUUID(), type, body }, userId, now, inTransaction)
      if (queued !== 'user_unknown' && queued > 0) onQueued()
      return queued
    },
  }
}

/**
 * Data that `JSON.parse` accepts can be nested too deeply for `JSON.stringify`, which exhausts the stack at a smaller
 * depth.
 */
function serialize(body: object): string {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    throw new Refusal('request_invalid', { cause })
  }
}
