// Decides whether one more free use is left today: Redis hints, the record in Postgres decides (CONTRACT §4).
import type { Clock } from '../clock.ts'
import type { FastCount } from './usage-hint.ts'
import type { UsageRecord, UsageStore } from './usage-store.ts'
import { utcDay } from './utc-day.ts'

/** `used`: what is spent of today, after this use. `no_user`: there is no such row, so nothing was counted. */
export type Use =
  | { counted: true; used: number }
  /** `day` is the one that was asked for. */
  | { counted: false; used: number; reason: 'spent' | 'no_user'; day: string }

export interface DailyCounter {
  /**
   * Counts one use of a free user today. A counted use is stored when this resolves.
   * @throws StorageError where the record cannot be reached: nothing may pass then
   */
  use(userId: number): Promise<Use>
  /** A record changed: a read that is under way is nobody's answer from now on. */
  onChange(): void
}

interface Parts {
  store: UsageStore
  /** Absent where there is no Redis. */
  fast?: FastCount | undefined
  clock: Clock
  /** `limits.free_daily`: uses a UTC day. */
  limit: number
  /** Told each time that Redis failed and the record was asked alone. */
  onFallback(reason: unknown): void
}

/**
 * A pass needs the conditional update, and a refusal needs the record: so no state of Redis (down, wiped, an
 * older copy, one that ran ahead in a crash) grants a use too many or refuses one that is left.
 */
export function createDailyCounter({ store, fast, clock, limit, onFallback }: Parts): DailyCounter {
  const reads = createSingleFlight(store)

  async function hint(userId: number, day: string): Promise<'room' | 'full' | 'unknown'> {
    if (fast === undefined) return 'unknown'
    try {
      return await fast.reserve(userId, day, limit)
    } catch (error) {
      onFallback(error)
      return 'unknown'
    }
  }

  async function correct(userId: number, day: string, used: number): Promise<void> {
    try {
      await fast?.set(userId, day, used)
    } catch (error) {
      onFallback(error)
    }
  }

  return {
    onChange: reads.forgetAll,
    async use(userId) {
      const day = utcDay(clock.now())
      const hinted = await hint(userId, day)
      if (hinted === 'full') {
        const record = await reads.read(userId)
        if (record === undefined) return { counted: false, used: 0, reason: 'no_user', day }
        const spent = spentOn(record, day)
        if (spent >= limit) return { counted: false, used: spent, reason: 'spent', day }
      }
      const used = await store.count(userId, day, limit)
      if (used !== undefined) {
        if (hinted === 'full') await correct(userId, day, used)
        return { counted: true, used }
      }
      const record = await reads.read(userId)
      if (record === undefined) return { counted: false, used: 0, reason: 'no_user', day }
      // The update saw the newest record: where it refused, nothing is left today (or the record is dated
      // tomorrow), whatever a copy of the record says.
      const spent = Math.max(spentOn(record, day), limit)
      if (hinted !== 'unknown') await correct(userId, day, spent)
      return { counted: false, used: spent, reason: 'spent', day }
    },
  }
}

function spentOn({ daily_usage, last_usage_date }: UsageRecord, day: string): number {
  return last_usage_date === day ? daily_usage : 0
}

interface Reads {
  read(userId: number): Promise<UsageRecord | undefined>
  forgetAll(): void
}

/** One read in flight for a user: a spent one who keeps trying must not fill the pool. */
function createSingleFlight(store: UsageStore): Reads {
  const inFlight = new Map<number, Promise<UsageRecord | undefined>>()
  return {
    read(userId) {
      const running = inFlight.get(userId)
      if (running !== undefined) return running
      const read = store.read(userId).finally(() => {
        if (inFlight.get(userId) === read) inFlight.delete(userId)
      })
      inFlight.set(userId, read)
      return read
    },
    forgetAll: () => inFlight.clear(),
  }
}
