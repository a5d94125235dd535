// The free daily guard (spec §8): one counted use per UTC day for plan `free`, on routes that ask for it.
import type { Clock } from '../clock.ts'
import type { Identity } from '../identity/identity.ts'
import { dailyLimitReached } from '../refusals/daily-limit.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import { secondsToMidnight } from '../usage/utc-day.ts'
import type { Admitted } from './require-plan.ts'
import type { Route } from './route.ts'

declare const counted: unique symbol

/** An identity whose use, where it is one, stands in the record. */
export type Counted = Identity & { readonly [counted]: true }

export type CountDailyUse = (admitted: Admitted, route: Pick<Route, 'free_daily'>) => Promise<Counted>

/** @param limit `limits.free_daily`, uses a day */
export function createCountDailyUse(counter: DailyCounter, limit: number, clock: Clock): CountDailyUse {
  return async (admitted, route) => {
    if (route.free_daily && admitted.kind === 'user' && admitted.user.plan === 'free') {
      const use = await counter.use(admitted.user.id)
      if (!use.counted) throw dailyLimitReached(limit, secondsToMidnight(clock.now()))
    }
    return admitted as Identity as Counted
  }
}
