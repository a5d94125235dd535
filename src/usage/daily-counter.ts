// Decides whether a user has a free use left today. Redis gives a hint, and the record in Postgres decides:
// docs/how-it-works.md#counting-a-use.
import { createBatches } from '../async/batches.ts'
import { createSingleFlight } from '../async/single-flight.ts'
import type { Clock } from '../clock.ts'
import { batchBounds } from './row-counter.ts'
import type { UsageHint } from './usage-hint.ts'
import type { Count, UsageRecord, UsageStore, UserIds } from './usage-store.ts'
import { utcDay } from './utc-day.ts'

/** `used` includes this use if it was counted. If the reason is `no_user`, the user does not exist. */
type UseResult =
  | { counted: true; used: number }
  /** `day` is the UTC day for which the user's uses were checked. */
  | { counted: false; used: number; reason: 'spent' | 'no_user'; day: string }

export interface DailyCounter {
  /**
   * Counts a use if the user has a use left. When the promise resolves, the counted use is already stored.
   * @throws StorageError; the caller must then refuse the request
   */
  use(userId: number): Promise<UseResult>
  /**
   * Call this when the record of a user has changed. Later calls of `use` then do not use the result of a read that
   * began before the change.
   */
  onChange(): void
}

interface Dependencies {
  store: UsageStore
  /** Absent without Redis. */
  usageHint?: UsageHint | undefined
  clock: Clock
  /** `limits.free_daily`, in uses per UTC day. */
  dailyLimit: number
  /** Called each time Redis fails. Then only the record in Postgres decides. */
  onFallback(reason: unknown): void
}

interface Use {
  readonly userId: number
  readonly day: string
}

type Hint = 'room' | 'full' | 'unknown'

/**
 * Counts uses in batches. Uses that arrive while a batch is being counted form the next batch. Each batch runs one
 * script in Redis and one statement in Postgres.
 *
 * A use is allowed only if the conditional update in Postgres succeeds. It is refused only after the record was read.
 * The counts in Redis may be missing or outdated, and too high after a crash. Even then, the counter allows no use
 * above the limit and refuses no use below the limit.
 */
export function createDailyCounter({
  store,
  usageHint,
  clock,
  dailyLimit,
  onFallback,
}: Dependencies): DailyCounter {
  // Concurrent uses of a user share one read of the record. Otherwise, a user without remaining uses could occupy all
  // connections of the pool with repeated requests.
  const reads = createSingleFlight(store.read)

  async function reserveHints(userIds: UserIds, day: string): Promise<readonly Hint[]> {
    if (usageHint === undefined) return userIds.map(() => 'unknown')
    try {
      const hints = await usageHint.reserve(userIds, day, dailyLimit)
      return hints.map(hint => {
        if (!(hint instanceof Error)) return hint
        onFallback(hint)
        return 'unknown'
      })
    } catch (error) {
      for (const _ of userIds) onFallback(error)
      return userIds.map(() => 'unknown')
    }
  }

  async function correctHint(userId: number, day: string, used: number): Promise<void> {
    try {
      await usageHint?.set(userId, day, used)
    } catch (error) {
      onFallback(error)
    }
  }

  /** If a use needs a second statement, its result is a promise. So the next batch does not wait for that statement. */
  async function decideTogether(uses: readonly [Use, ...Use[]]) {
    const [{ day }] = uses
    const userIds = idsOf(uses)
    const hints = await reserveHints(userIds, day)
    const [first, ...others] = userIds.filter((_, index) => hints[index] !== 'full')
    const counts = first === undefined ? [] : await store.count([first, ...others], day, dailyLimit)
    let next = 0
    return uses.map((use, index) => {
      const hint = hints[index] ?? 'unknown'
      if (hint === 'full') return decideFull(use)
      const count = counts[next]
      next += 1
      return count instanceof Promise || !count?.counted
        ? decideCounted(use, hint, count)
        : { counted: true as const, used: count.used }
    })
  }

  /**
   * Decides a use after Redis has reported that the user has no use left. Redis may be wrong, so the record in Postgres
   * decides.
   */
  async function decideFull(use: Use): Promise<UseResult> {
    const { userId, day } = use
    const record = await reads.run(userId)
    if (record === undefined) return { counted: false, used: 0, reason: 'no_user', day }
    const usedToday = usedOn(record, day)
    if (usedToday >= dailyLimit) return { counted: false, used: usedToday, reason: 'spent', day }
    return decideCounted(use, 'full', countFull(use))
  }

  async function decideCounted(use: Use, hint: Hint, counting: Count | Promise<Count>): Promise<UseResult> {
    const { userId, day } = use
    const count = await counting
    if (count === undefined) return { counted: false, used: 0, reason: 'no_user', day }
    const { counted, used } = count
    if (counted) {
      if (hint === 'full') await correctHint(userId, day, used)
      return { counted, used }
    }
    // The use is also refused if the record already has the date of the next day. `used` is then 0, so the limit is
    // reported instead of 0.
    const usedToday = Math.max(used, dailyLimit)
    if (hint !== 'unknown') await correctHint(userId, day, usedToday)
    return { counted, used: usedToday, reason: 'spent', day }
  }

  const batches = {
    ...batchBounds,
    // Around midnight, waiting uses may belong to two days. A batch counts the uses of only one day, so uses of the
    // other day wait for the next batch.
    areAlike: (first: Use, later: Use) => first.day === later.day,
  }
  const decide = createBatches<Use, UseResult>({ ...batches, run: decideTogether })
  const countFull = createBatches<Use, Count>({
    ...batches,
    run: uses => store.count(idsOf(uses), uses[0].day, dailyLimit),
  })
  return {
    onChange: reads.forgetAll,
    use: userId => decide({ userId, day: utcDay(clock.now()) }),
  }
}

function idsOf([first, ...others]: readonly [Use, ...Use[]]): UserIds {
  return [first.userId, ...others.map(({ userId }) => userId)]
}

function usedOn({ daily_usage, last_usage_date }: UsageRecord, day: string): number {
  return last_usage_date === day ? daily_usage : 0
}
