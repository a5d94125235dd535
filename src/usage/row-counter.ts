// Counts uses in rows of the database. One statement counts all uses of a batch. No use waits for another
// user's row.
import { createBatches } from '../async/batches.ts'

/**
 * The limits of a batch. A statement of at most 100 uses locks its rows only briefly, and its failure affects at most
 * 100 uses. Larger batches are not cheaper per use. A batch waits at most 300 ms for the previous batch. This time and
 * the timeouts of Redis and Postgres add up to less than 2 s. So a storage failure is noticed within 2 s.
 */
export const batchBounds = { maxItems: 100, maxWaitMs: 300 }

/** Identifies a row: the ID of a user, or a text, for example `7 exports day`. */
export type RowKey = number | string

/** Uses of one row that one statement counts together. `areAlike` is true for `use` and each of the other uses. */
export interface UseGroup<Use> {
  readonly use: Use
  uses: number
}

/** A row that a statement has locked. If the statement has counted a use, it has also changed the row. */
export interface CountedRow {
  /** At first the number of uses before the statement. `nextResult` then adds the cost of each counted use. */
  used: number
  /** The number of uses after the statement. */
  readonly used_after: number
}

interface Statements<Use, Row, Result> {
  keyOf(use: Use): RowKey
  userOf(use: Use): number
  /** Returns the number that a use adds to the count in its row. */
  costOf(use: Use): number
  /** Returns whether one statement can count both uses. Called only for uses of the same row. */
  areAlike(first: Use, later: Use): boolean
  /**
   * Counts the uses of each group, up to the limit. Skips locked rows.
   * @returns the rows. Locked and missing rows are left out. Rows in which no use was counted may be left out too.
   */
  countUnlocked(groups: readonly [UseGroup<Use>, ...UseGroup<Use>[]]): Promise<ReadonlyMap<RowKey, Row>>
  /** Waits until the row of a group is unlocked, and counts the uses. @returns undefined if the user does not exist */
  countWaiting(group: UseGroup<Use>): Promise<Row | undefined>
  /** Returns the result of a use. @param used the number of uses in the row, including this use if it was counted */
  resultOf(isCounted: boolean, used: number, row: Row): Result
}

/**
 * Counts each use at most once.
 * @returns one result for each use, in the same order. A result is undefined if the user does not exist. A result is a
 *   promise if a second statement must decide, for example because the row is locked.
 * @throws StorageError
 */
export type CountUses<Use, Result> = (
  uses: readonly Use[],
) => Promise<readonly (Result | undefined | Promise<Result | undefined>)[]>

export function createRowCounter<Use, Row extends CountedRow, Result>(
  statements: Statements<Use, Row, Result>,
): CountUses<Use, Result> {
  const { keyOf, userOf, areAlike, countUnlocked } = statements
  const waitingUsers = createWaitingUsers(statements)

  return async uses => {
    const groups = new Map<RowKey, UseGroup<Use>>()
    const inGroup = uses.map(use => {
      if (waitingUsers.has(userOf(use))) return false
      const group = groups.get(keyOf(use))
      if (group === undefined) groups.set(keyOf(use), { use, uses: 1 })
      else if (areAlike(group.use, use)) group.uses += 1
      else return false
      return true
    })
    const [first, ...others] = groups.values()
    const rows = first === undefined ? new Map<RowKey, Row>() : await countUnlocked([first, ...others])
    return uses.map((use, index) => {
      const row = inGroup[index] ? rows.get(keyOf(use)) : undefined
      return row === undefined ? waitingUsers.count(use) : nextResult(statements, use, row)
    })
  }
}

/**
 * Decides the uses that the first statement did not decide, for example because the row is locked or missing. Each user
 * has a separate queue, in the order of the calls. So no user waits for the row of another user, and few connections
 * wait for rows.
 */
function createWaitingUsers<Use, Row extends CountedRow, Result>(statements: Statements<Use, Row, Result>) {
  const { keyOf, userOf, areAlike, countWaiting } = statements
  type Waiting = (use: Use) => Promise<Result | undefined>
  const waiting = new Map<number, { uses: number; count: Waiting }>()

  const createCount = (): Waiting =>
    createBatches({
      ...batchBounds,
      areAlike: (first, later) => keyOf(first) === keyOf(later) && areAlike(first, later),
      async run(uses) {
        const row = await countWaiting({ use: uses[0], uses: uses.length })
        return uses.map(use => row && nextResult(statements, use, row))
      },
    })

  return {
    has: (userId: number) => waiting.has(userId),
    async count(use: Use) {
      const userId = userOf(use)
      const user = waiting.get(userId) ?? { uses: 0, count: createCount() }
      waiting.set(userId, user)
      user.uses += 1
      try {
        return await user.count(use)
      } finally {
        user.uses -= 1
        if (user.uses === 0) waiting.delete(userId)
      }
    },
  }
}

/**
 * Returns the result of one use, counted or not. Call it once for each use of a group, in their order, because it
 * changes `row.used`.
 */
function nextResult<Use, Row extends CountedRow, Result>(
  { costOf, resultOf }: Statements<Use, Row, Result>,
  use: Use,
  row: Row,
): Result {
  // The cost is not part of this comparison. For a very large `used`, JavaScript could round `used + cost` to `used`.
  const isCounted = row.used < row.used_after
  if (isCounted) row.used += costOf(use)
  return resultOf(isCounted, row.used, row)
}
