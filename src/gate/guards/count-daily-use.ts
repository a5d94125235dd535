// Defines the daily-use guard. It counts uses per UTC day for plan `free`, on routes with `free_daily`.
import type { Clock } from '../../clock.ts'
import { createDailyLimitReached } from '../../refusals/limits.ts'
import type { DailyCounter } from '../../usage/daily-counter.ts'
import type { ExhaustedUsers } from '../../usage/exhausted-users.ts'
import { secondsToMidnight, utcDay } from '../../usage/utc-day.ts'
import { type Admission, createCountingGuard } from './admission.ts'
import type { TargetAvailable } from './available-target.ts'
import type { Guard } from './guard.ts'

/** A guard that refuses with 429 `daily_limit_reached`. */
export type CountDailyUse = Guard<TargetAvailable, Admission>

interface Options {
  counter: Pick<DailyCounter, 'use'>
  spent: ExhaustedUsers
  /** `limits.free_daily`, in uses per UTC day. */
  limit: number
  clock: Clock
}

export function createCountDailyUse({ counter, spent, limit, clock }: Options): CountDailyUse {
  const reached = createDailyLimitReached(limit)
  /**
   * @param day the day on which the user has no uses left; yesterday if midnight has passed since the count started
   */
  const refusal = (day: string) => {
    const now = clock.now()
    return reached(day < utcDay(now) ? 1 : secondsToMidnight(now))
  }

  return createCountingGuard({
    countedOf: identity =>
      identity.kind === 'user' && identity.user.plan === 'free' ? identity.user : undefined,
    refusalFromMemory({ id }) {
      const today = utcDay(clock.now())
      return spent.get(id) === today ? refusal(today) : undefined
    },
    async count({ id }) {
      const refused = spent.beginRead()
      const result = await counter.use(id)
      if (result.counted) return undefined
      if (result.reason === 'spent') refused(id, result.day)
      return refusal(result.day)
    },
  })
}
