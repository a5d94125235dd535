// Stores the events for the operator's service, in the transaction of the change that they report. The events of one
// user are leased and recorded in order.
import {
  type AttemptOutcome,
  type AttemptStore,
  createAttemptStore,
  type Lease,
} from '../../outbox/attempt-store.ts'
import { countRows, type Database, type Queryable } from '../../storage/database.ts'

export interface NewEvent {
  readonly userId: number
  readonly type: string
  /** The request body, exactly as sent. */
  readonly body: string
}

export interface LeasedEvent extends Lease {
  message_id: string
  user_id: number
  body: string
}

export interface EventStore extends Pick<AttemptStore<'delivered'>, 'release'> {
  /**
   * Leases due events, the longest due first. For each user, leases only the oldest unfinished event. Concurrent
   * callers get different events.
   */
  lease(limit: number, now: Date, leaseUntil: Date): Promise<LeasedEvent[]>
  /**
   * Records the outcome of an attempt. If the event is finished, the next event of its user becomes due. If the user
   * was deleted, the finished event is deleted too.
   */
  recordAttempt(
    leased: Lease & Pick<LeasedEvent, 'user_id'>,
    outcome: AttemptOutcome<'delivered'>,
    now: Date,
  ): Promise<void>
  /** Deletes up to `limit` events that were finished before `before`. @returns how many were deleted */
  prune(before: Date, limit: number): Promise<number>
  /**
   * Deletes up to `limit` pending events of users whose latest pending event was created before `before`. Call this
   * only if the gateway sends no events.
   */
  pruneUnsent(before: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createEventStore(database: Database): EventStore {
  const attempts = createAttemptStore<'delivered'>(database, 'events')
  return {
    release: attempts.release,

    lease: (limit, now, leaseUntil) =>
      database.query<LeasedEvent>(
        `with due as (
           select id from events
            where status = 'pending' and due_at <= $1::timestamptz
            order by due_at, id limit $2 for update skip locked
         )
         update events e set attempts = e.attempts + 1, due_at = $3::timestamptz
           from due where e.id = due.id
         returning e.id, e.attempts, e.message_id, e.user_id, e.body`,
        [now, limit, leaseUntil],
      ),

    async recordAttempt(leased, outcome, now) {
      if (typeof outcome.result === 'object') return attempts.recordAttempt(leased, outcome, now)
      await database.transaction(async tx => {
        const isThere = await lockUser(tx, leased.user_id)
        await createAttemptStore<'delivered'>(tx, 'events').recordAttempt(leased, outcome, now)
        if (!isThere) await tx.query(forgetEndedSql, [leased.user_id])
        await tx.query(
          `update events set due_at = $2::timestamptz
            where due_at is null
              and id = (select id from events where user_id = $1 and status = 'pending' order by id limit 1)`,
          [leased.user_id, now],
        )
      })
    },

    prune: (before, limit) =>
      countRows(
        database,
        `delete from events where id = any(array(
           select id from events where finished_at < $1 order by finished_at limit $2 for update skip locked
         ))
         returning id`,
        [before, limit],
      ),

    pruneUnsent: (before, limit) =>
      countRows(
        database,
        `delete from events where id = any(array(
           select id from events e
            where status = 'pending' and created_at < $1
              and not exists (
                select from events later
                 where later.user_id = e.user_id and later.status = 'pending' and later.created_at >= $1
              )
            order by id limit $2 for update skip locked
         ))
         returning id`,
        [before, limit],
      ),
  }
}

/**
 * Locks the user's row. Every change of the user locks this row before it stores events. So this call waits until a
 * running change is committed, and the next change waits for this transaction. Without the lock, a new event could be
 * stored as waiting for an event that has just been finished. The new event would then never become due. If the user
 * was deleted, there is no row, and no event can follow.
 * @returns whether the user exists
 */
async function lockUser(tx: Queryable, userId: number): Promise<boolean> {
  const rows = await tx.query('select 1 from users where id = $1 for share', [userId])
  return rows.length > 0
}

/** For a deleted user, only the events that must still be sent are kept. */
const forgetEndedSql = `delete from events where user_id = $1 and status <> 'pending'`

/**
 * Stores events in the given order, in the transaction of the changes that they report. An event is due immediately,
 * unless an older event of its user is unfinished.
 * @param tx a transaction that has already changed each of these users, so their rows are locked
 * @throws StorageError
 */
export async function storeEvents(tx: Queryable, events: readonly NewEvent[], now: Date): Promise<void> {
  await tx.query(
    `insert into events (user_id, type, body, created_at, due_at)
     select user_id, type, body, $4::timestamptz,
            case when row_number() over (partition by user_id order by n) = 1
                  and not exists (
                    select from events older where older.user_id = stored.user_id and older.status = 'pending'
                  )
                 then $4::timestamptz end
       from unnest($1::bigint[], $2::text[], $3::text[]) with ordinality as stored (user_id, type, body, n)
      order by n`,
    [events.map(({ userId }) => userId), events.map(({ type }) => type), events.map(({ body }) => body), now],
  )
}
