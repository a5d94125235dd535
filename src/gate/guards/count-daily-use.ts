// Defines the daily-use guard. It counts uses per UTC day for plan `free`, on routes with `free_daily`.
import type { Clock } from '../../clock.ts'
import type { Identity } from '../../identity/identity.ts'
import { createDailyLimitReached } from '../../refusals/limits.ts'
import { ClientDisconnected, type Refusal } from '../../refusals/refusal.ts'
import { cancelReservation, type Reservation } from '../../upstream/reservation.ts'
import type { DailyCounter } from '../../usage/daily-counter.ts'
import type { ExhaustedUsers } from '../../usage/exhausted-users.ts'
import { secondsToMidnight, utcDay } from '../../usage/utc-day.ts'
import type { User } from '../../users/user.ts'
import type { TargetAvailable } from './available-target.ts'
import type { Guard, GuardedRequest } from './guard.ts'

declare const useIsStored: unique symbol

/** The admission of a request that all guards allow. If the request counts as a use, this use is already stored. */
export interface Admission {
  readonly allowed: true
  readonly identity: Identity
  /**
   * The connection reserved for a counted request. Undefined if no use was counted. The code that forwards the request
   * takes over this connection.
   */
  readonly reservation: Reservation | undefined
  readonly [useIsStored]: true
}

function admit(identity: Identity, reservation: Reservation | undefined): Admission {
  return { allowed: true, identity, reservation } as Admission
}

/** The last guard of a route without `free_daily`. */
export const admitUncounted: Guard<TargetAvailable, Admission> = (_, identity) => admit(identity, undefined)

/** A guard that refuses with 429 `daily_limit_reached`. */
export type CountDailyUse = Guard<TargetAvailable, Admission>

interface Options {
  counter: Pick<DailyCounter, 'use'>
  spent: ExhaustedUsers
  /** `limits.free_daily`, in uses per UTC day. */
  limit: number
  clock: Clock
}

/**
 * Creates the guard. It is synchronous if nothing is counted, or if the user has no uses left today according to the
 * cache.
 */
export function createCountDailyUse({ counter, spent, limit, clock }: Options): CountDailyUse {
  const reached = createDailyLimitReached(limit)
  /**
   * @param day the day on which the user has no uses left; this day is already over if the count started just before
   *   midnight
   */
  const refusal = (day: string) => {
    const now = clock.now()
    return reached(day < utcDay(now) ? 1 : secondsToMidnight(now))
  }

  async function count(
    request: GuardedRequest,
    user: User,
    identity: Identity,
  ): Promise<Admission | Refusal> {
    // If the body arrived together with the head, Node parses it after the current synchronous code. Without the
    // `await`, `isGone` could not yet report an invalid body.
    await undefined
    if (request.isGone()) throw new ClientDisconnected()
    const reserving = request.reserveConnection()
    const hasWaited = reserving instanceof Promise
    const reservation = hasWaited ? await reserving : reserving
    let refused: Refusal | undefined
    try {
      refused = await use(user.id, hasWaited)
    } catch (error) {
      cancelReservation(reservation)
      throw error
    }
    if (refused === undefined) return admit(identity, reservation)
    cancelReservation(reservation)
    return refused
  }

  /** @param hasWaited if true, another request may have used the last daily use during the wait */
  async function use(userId: number, hasWaited: boolean): Promise<Refusal | undefined> {
    if (hasWaited) {
      const today = utcDay(clock.now())
      if (spent.has(userId, today)) return refusal(today)
    }
    const refused = spent.beginRead()
    const result = await counter.use(userId)
    if (result.counted) return undefined
    if (result.reason === 'spent') refused(userId, result.day)
    return refusal(result.day)
  }

  return (request, identity) => {
    if (identity.kind !== 'user' || identity.user.plan !== 'free') return admit(identity, undefined)
    // The gateway itself responds to this request, so no use is counted.
    if (request.head.isLastHop) return admit(identity, undefined)
    const today = utcDay(clock.now())
    if (spent.has(identity.user.id, today)) return refusal(today)
    return count(request, identity.user, identity)
  }
}
