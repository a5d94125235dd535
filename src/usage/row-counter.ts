// Counts uses in rows of the database. The uses of one batch share a statement, and no use waits for another user's row.
import { createBatches } from '../async/batches.ts'

/**
 * The limits of a batch. A statement of at most 100 uses locks its rows only briefly, and its failure affects at most
 * 100 uses. Larger batches are not cheaper per use. A batch waits at most 300 ms for the batch before it. Together
 * with the timeouts of Redis and Postgres, this is less than 2 s, so a storage failure is noticed within that time.
 */
export const batchBounds = { maxItems: 100, maxWaitMs: 300 }

/** Identifies a row: a user's ID, or a text. */
export type RowKey = number | string

/** Uses of one row that one statement counts. They are all like `use` (see `areAlike`). */
export interface UseGroup<Use> {
  readonly use: Use
  uses: number
}

/** A row that a statement has locked and changed. */
export interface CountedRow {
  /** The uses in the row: first those counted before the statement, then also each use that `nextResult` returned. */
  used: number
  /** The uses in the row after the statement. */
  readonly used_after: number
}

interface Statements<Use, Row, Result> {
  keyOf(use: Use): RowKey
  userOf(use: Use): number
  /** Returns the number that one use adds to the uses in the row. */
  costOf(use: Use): number
  /** Returns whether one statement can count both uses, which have the same row. */
  areAlike(first: Use, later: Use): boolean
  /**
   * Counts the uses of each group, as far as the limit allows. Skips locked rows.
   * @returns the rows. Locked and missing rows are left out. Rows without a counted use may be left out too.
   */
  countUnlocked(groups: readonly [UseGroup<Use>, ...UseGroup<Use>[]]): Promise<ReadonlyMap<RowKey, Row>>
  /** Counts the uses of a group and waits for its row. @returns undefined if the user does not exist */
  countWaiting(group: UseGroup<Use>): Promise<Row | undefined>
  /** Returns the result of a use. @param used the uses in the row, which include this use if it was counted */
  resultOf(isCounted: boolean, used: number, row: Row): Result
}

/**
 * Counts each use at most once.
 * @returns the results in the order of the uses; undefined if the user does not exist; a promise if a second statement
 *   has to decide, for example for a locked row
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
 * Decides the uses that the first statement did not count, because the row is locked or does not exist, or because the
 * user has no use left. Each user has a separate queue, in the order of the calls. So no user waits for the row of
 * another user, and waiting for a row occupies few connections.
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

/** Returns the result of the next of the uses that a statement has counted together. */
function nextResult<Use, Row extends CountedRow, Result>(
  { costOf, resultOf }: Statements<Use, Row, Result>,
  use: Use,
  row: Row,
): Result {
  // This compares without the cost. For a very large `used`, `used + cost` could be rounded to `used`.
  const isCounted = row.used < row.used_after
  if (isCounted) row.used += costOf(use)
  return resultOf(isCounted, row.used, row)
}
