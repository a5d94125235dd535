// Counts the users of each plan, and moves all users of a plan to another plan.
import { type Database, StorageError, type TransactionStep } from '../storage/database.ts'
import type { Plan, User } from './user.ts'
import type { RecordUserChanges } from './user-change.ts'
import { userColumns } from './user-record-store.ts'

/** The number of users whose record contains the plan, including inactive users. */
export interface PlanCount {
  readonly plan: Plan
  readonly users: number
}

export interface PlanStore {
  /**
   * Counts the users of each plan in the user records, ordered by the name of the plan.
   * @returns undefined if the statement takes too long
   */
  count(): Promise<PlanCount[] | undefined>
  /** Counts the users of each plan except the `known` plans. The time limit is longer than the limit of `count`. */
  countOthers(known: readonly Plan[]): Promise<PlanCount[]>
  /**
   * Moves the next users of the plan `from` to the plan `to`, in one transaction. Their subscriptions get the new plan
   * too.
   * @param after `last` from the result of the previous call; 0 for the first call
   * @param inTransaction returns a step that runs in the same transaction
   * @returns undefined if no user of the plan `from` is left
   */
  moveNext(
    change: { readonly from: Plan; readonly to: Plan },
    after: number,
    inTransaction: (userIds: readonly number[]) => TransactionStep,
  ): Promise<Moved | undefined>
}

interface Moved {
  /** The number of moved users. It is 0 if other programs have meanwhile changed the plan of every examined user. */
  readonly count: number
  /** The highest user ID that was examined. */
  readonly last: number
}

/** The number of users in one transaction. */
const usersPerMove = 1_000

/** The time limits of statements that may read all users. No request waits for them. */
const countTimeoutMs = 10_000
const findTimeoutMs = 600_000
/**
 * The time limit for moving users. Uses of the moved users cannot be counted until this transaction ends. So the
 * transaction must not wait long for the row of another user.
 */
const moveTimeoutMs = 10_000

/** The SQLSTATE query_canceled. Postgres cancels a statement that exceeds the usual time limit. */
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
