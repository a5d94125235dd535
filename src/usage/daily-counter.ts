// Decides whether a user has a free use left today: Redis hints, the record in Postgres decides (CONTRACT §4).
import type { Clock } from '../clock.ts'
import type { UsageHint } from './usage-hint.ts'
import type { UsageRecord, UsageStore } from './usage-store.ts'
import { utcDay } from './utc-day.ts'

/** `used`: today's uses, including this one. `no_user`: there is no such row, so nothing was counted. */
type UseResult =
  | { counted: true; used: number }
  /** The day that the use was counted for. */
  | { counted: false; used: number; reason: 'spent' | 'no_user'; day: string }

export interface DailyCounter {
  /**
   * Counts one use of a free user today. A counted use is stored when this resolves.
   * @throws StorageError when the record cannot be reached: the request must then be refused
   */
  use(userId: number): Promise<UseResult>
  /** A record changed: reads in progress are not shared with later callers. */
  onChange(): void
}

interface Dependencies {
  store: UsageStore
  /** Absent without Redis. */
  usageHint?: UsageHint | undefined
  clock: Clock
  /** `limits.free_daily`: uses per UTC day. */
  dailyLimit: number
  /** Called each time Redis fails and the record decides alone. */
  onFallback(reason: unknown): void
}

/**
 * Allowing needs the conditional update, and refusing needs the record: so no state of Redis (down, wiped, an older
 * copy, one that ran ahead in a crash) allows a use too many or refuses one that is left.
 */
export function createDailyCounter({
  store,
  usageHint,
  clock,
  dailyLimit,
  onFallback,
}: Dependencies): DailyCounter {
  const reads = createSingleFlight(store)

  async function reserveHint(userId: number, day: string): Promise<'room' | 'full' | 'unknown'> {
    if (usageHint === undefined) return 'unknown'
    try {
      return await usageHint.reserve(userId, day, dailyLimit)
    } catch (error) {
      onFallback(error)
      return 'unknown'
    }
  }

  async function correctHint(userId: number, day: string, used: number): Promise<void> {
    try {
      await usageHint?.set(userId, day, used)
    } catch (error) {
      onFallback(error)
    }
  }

  return {
    onChange: reads.forgetAll,
    async use(userId) {
      const day = utcDay(clock.now())
      const hinted = await reserveHint(userId, day)
      if (hinted === 'full') {
        const record = await reads.read(userId)
        if (record === undefined) return { counted: false, used: 0, reason: 'no_user', day }
        const usedToday = usedOn(record, day)
        if (usedToday >= dailyLimit) return { counted: false, used: usedToday, reason: 'spent', day }
      }
      const used = await store.count(userId, day, dailyLimit)
      if (used !== undefined) {
        if (hinted === 'full') await correctHint(userId, day, used)
        return { counted: true, used }
      }
      const record = await reads.read(userId)
      if (record === undefined) return { counted: false, used: 0, reason: 'no_user', day }
      // The update saw the newest record: if it refused, nothing is left today (or the record is dated tomorrow),
      // whatever a shared read returned.
      const usedToday = Math.max(usedOn(record, day), dailyLimit)
      if (hinted !== 'unknown') await correctHint(userId, day, usedToday)
      return { counted: false, used: usedToday, reason: 'spent', day }
    },
  }
}

function usedOn({ daily_usage, last_usage_date }: UsageRecord, day: string): number {
  return last_usage_date === day ? daily_usage : 0
}

interface Reads {
  read(userId: number): Promise<UsageRecord | undefined>
  forgetAll(): void
}

/** One read per user at a time: an exhausted user who keeps trying must not take all of the pool's connections. */
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
