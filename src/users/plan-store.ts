// Counts the users of each plan, and moves all users of a plan to another plan.
import { type Database, StorageError, type TransactionStep } from '../storage/database.ts'
import type { Plan, User } from './user.ts'
import type { RecordUserChanges } from './user-change.ts'
import { userColumns } from './user-record-store.ts'

/** The number of users with a stored plan, which include inactive users. */
export interface PlanCount {
  readonly plan: Plan
  readonly users: number
}

export interface PlanStore {
  /** Counts the users of every stored plan, ordered by name. @returns undefined if the statement takes too long */
  count(): Promise<PlanCount[] | undefined>
  /** Counts the users of every stored plan except the given plans. The time limit is longer than for `count`. */
  countOthers(known: readonly Plan[]): Promise<PlanCount[]>
  /**
   * Gives the plan `to` to the next users of the plan `from`, in one transaction. Their subscriptions get the plan too.
   * @param after the `last` of the previous call; 0 for the first call
   * @param inTransaction returns a step that stores its changes in the same transaction
   * @returns undefined if no user of the plan is left
   */
  moveNext(
    change: { readonly from: Plan; readonly to: Plan },
    after: number,
    inTransaction: (userIds: readonly number[]) => TransactionStep,
  ): Promise<Moved | undefined>
}

interface Moved {
  /** The number of moved users. It may be 0 if other programs changed the users in the meantime. */
  readonly count: number
  /** The highest ID that was examined. */
  readonly last: number
}

/** The number of users in one transaction. */
const usersPerMove = 1_000

/** The time limits of statements that may read all users. No request waits for them. */
const countTimeoutMs = 10_000
const findTimeoutMs = 600_000
/** Counted uses of the moved users wait for this transaction, so it must not wait long for the row of another user. */
const moveTimeoutMs = 10_000

/** The SQLSTATE query_canceled. The server cancels a statement at the usual time limit. */
const canceled = '57014'

/** Every method throws StorageError when the store fails. */
export function createPlanStore(database: Database, recordChanges?: RecordUserChanges): PlanStore {
  return {
    async count() {
      try {
        return await database.query<PlanCount>(countSql, [[]])
      } catch (error) {
        if (error instanceof StorageError && error.code === canceled) return undefined
        throw error
      }
    },

    countOthers: known =>
      database.transaction(tx => tx.query<PlanCount>(countSql, [known]), { timeoutMs: countTimeoutMs }),

    async moveNext({ from, to }, after, inTransaction) {
      // This statement may take long, so it runs before the transaction that locks the users.
      const found = await database.transaction(
        tx =>
          tx.query<{ id: number }>('select id from users where plan = $1 and id > $2 order by id limit $3', [
            from,
            after,
            usersPerMove,
          ]),
        { timeoutMs: findTimeoutMs },
      )
      const last = found.at(-1)?.id
      if (last === undefined) return undefined
      return database.transaction(
        async tx => {
          const users = await tx.query<User>(moveSql, [found.map(({ id }) => id), from, to])
          await recordChanges?.(
            tx,
            users.map(user => ({ type: 'user.plan_changed', user })),
          )
          await inTransaction(users.map(({ id }) => id))(tx)
          return { count: users.length, last }
        },
        { timeoutMs: moveTimeoutMs },
      )
    },
  }
}

const countSql = `
  select plan, count(*) as users from users where plan <> all($1::text[]) group by plan order by plan collate "C"`

// The users are locked in the order of their IDs, so two moves at the same time cannot block each other forever.
const moveSql = `
  with chosen as materialized (
    select id from users where id = any($1::bigint[]) and plan = $2 order by id for no key update
  ), changed as (
    update users u set plan = $3 from chosen c where u.id = c.id returning ${userColumns}
  ), subscribed as (
    insert into subscriptions (user_id, plan) select id, plan from changed
    on conflict (user_id) do update set plan = excluded.plan, updated_at = now()
  )
  select ${userColumns} from changed u order by id`
