// The free daily guard (spec §8): one counted use per UTC day for plan `free`, on routes that ask for it.
import type { User } from '../accounts/user.ts'
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

export type CountDailyUse = (
  admitted: Admitted,
  route: Pick<Route, 'free_daily'>,
) => Counted | Promise<Counted>

/** @param limit `limits.free_daily`, uses a day */
export function createCountDailyUse(counter: DailyCounter, limit: number, clock: Clock): CountDailyUse {
  async function count(user: User, identity: Counted): Promise<Counted> {
    const use = await counter.use(user.id)
    if (!use.counted) throw dailyLimitReached(limit, secondsToMidnight(clock.now()))
    return identity
  }
  return (admitted, route) => {
    const identity = admitted as Identity as Counted
    if (!route.free_daily || identity.kind !== 'user' || identity.user.plan !== 'free') return identity
    return count(identity.user, identity)
  }
}
