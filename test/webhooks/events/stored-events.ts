// Creates users and events in a store.
import type { Database, Queryable } from '../../../src/storage/database.ts'
import { createEventStore, storeEvents } from '../../../src/webhooks/events/event-store.ts'
import { addUser } from '../../support/users.ts'

export interface EventRow {
  id: number
  user_id: number
  type: string
  status: 'pending' | 'delivered' | 'failed'
  attempts: number
  due_at: Date | null
  response_status: number | null
  error: string | null
  finished_at: Date | null
}

export type StoredEvents = ReturnType<typeof eventsIn>

export function eventsIn(database: Database, now: () => number) {
  return {
    store: createEventStore(database),

    user: () => addUser(database),

    /**
     * Changes the user, and stores events of these types in the same transaction.
     * @param more runs at the end of the transaction
     */
    change(
      userId: number,
      types: readonly string[],
      more: (tx: Queryable) => Promise<void> = async () => {},
    ): Promise<void> {
      return database.transaction(async tx => {
        await tx.query('update users set plan = plan where id = $1', [userId])
        const events = types.map(type => ({ userId, type, body: JSON.stringify({ type, userId }) }))
        await storeEvents(tx, events, new Date(now()))
        await more(tx)
      })
    },

    rows: (userId?: number): Promise<EventRow[]> =>
      database.query<EventRow>('select * from events where $1::bigint is null or user_id = $1 order by id', [
        userId ?? null,
      ]),

    async empty(): Promise<void> {
      for (const table of ['events', 'users']) await database.query(`delete from ${table}`)
    },
  }
}
