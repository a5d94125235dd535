// The free daily guard (spec §8): counts uses per UTC day for plan `free`, on routes with `free_daily`.

import type { Clock } from '../../clock.ts'
import type { Identity } from '../../identity/identity.ts'
import { createDailyLimitReached } from '../../refusals/limits.ts'
import { ClientDisconnected, type Refusal } from '../../refusals/refusal.ts'
import type { DailyCounter } from '../../usage/daily-counter.ts'
import type { ExhaustedUsers } from '../../usage/exhausted-users.ts'
import { secondsToMidnight, utcDay } from '../../usage/utc-day.ts'
import type { User } from '../../users/user.ts'
import type { TargetAvailable } from './available-target.ts'
import type { Guard, GuardedRequest } from './guard.ts'

declare const counted: unique symbol

/** An identity whose use, if it counts as one, is stored. */
export type UsageCounted = Identity & { readonly [counted]: true }

/** Refuses with 429 `daily_limit_reached`. */
export type CountDailyUse = Guard<TargetAvailable, UsageCounted>

interface Options {
  counter: Pick<DailyCounter, 'use'>
  spent: ExhaustedUsers
  /** `limits.free_daily`, in uses per UTC day. */
  limit: number
  clock: Clock
}

/** Synchronous if nothing is counted, or if the user's day is known to be exhausted. */
export function createCountDailyUse({ counter, spent, limit, clock }: Options): CountDailyUse {
  const reached = createDailyLimitReached(limit)
  /** @param day without uses left: over by now, if the use was asked for just before midnight */
  const refusal = (day: string) => {
    const now = clock.now()
    return reached(day < utcDay(now) ? 1 : secondsToMidnight(now))
  }

  async function count(
    request: GuardedRequest,
    user: User,
    identity: UsageCounted,
  ): Promise<UsageCounted | Refusal> {
    // What came in one piece with the head is parsed by then.
    await undefined
    if (request.isGone()) throw new ClientDisconnected()
    const wait = request.awaitConnection()
    if (wait !== undefined) {
      await wait
      const today = utcDay(clock.now())
      if (spent.has(user.id, today)) return refusal(today)
    }
    const refused = spent.beginRead()
    const use = await counter.use(user.id)
    if (use.counted) return identity
    if (use.reason === 'spent') refused(user.id, use.day)
    return refusal(use.day)
  }

  return (request, targeted) => {
    const identity = targeted as Identity as UsageCounted
    if (identity.kind !== 'user' || identity.user.plan !== 'free') return identity
    // The gateway answers it: the service is not used.
    if (request.head.isLastHop) return identity
    const today = utcDay(clock.now())
    if (spent.has(identity.user.id, today)) return refusal(today)
    return count(request, identity.user, identity)
  }
}
