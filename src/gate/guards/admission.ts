// Defines the result of the last guard, and how a guard counts a use before it admits a request.
import type { Identity } from '../../identity/identity.ts'
import { ClientDisconnected, type Refusal } from '../../refusals/refusal.ts'
import { cancelReservation, type Reservation } from '../../upstream/reservation.ts'
import type { TargetAvailable } from './available-target.ts'
import type { Guard, GuardedRequest } from './guard.ts'

declare const useIsStored: unique symbol

/** The admission of a request that all guards allow. If the request counts as a use, this use is already stored. */
export interface Admission {
  readonly allowed: true
  readonly identity: Identity
  /**
   * The connection reserved for a counted request. Undefined if no use was counted, or if the gateway does not forward
   * the request. The code that forwards the request takes over this connection.
   */
  readonly reservation: Reservation | undefined
  readonly [useIsStored]: true
}

function admit(identity: Identity, reservation: Reservation | undefined): Admission {
  return { allowed: true, identity, reservation } as Admission
}

/** The last guard of a route that counts no uses. */
export const admitUncounted: Guard<TargetAvailable, Admission> = (_, identity) => admit(identity, undefined)

interface Counting<Counted> {
  /** Returns the use to count; undefined if the request does not count as a use. */
  countedOf(identity: Identity): Counted | undefined
  /** Returns the refusal if the gateway remembers that the user has no uses left. */
  refusalFromMemory(counted: Counted): Refusal | undefined
  /** Stores a use. @returns the refusal if no use is left @throws StorageError */
  count(counted: Counted, request: GuardedRequest): Promise<Refusal | undefined>
}

/** Creates a guard that decides synchronously if no use is counted, or if the refusal of the user is cached. */
export function createCountingGuard<Counted>(counting: Counting<Counted>): Guard<TargetAvailable, Admission> {
  const { countedOf, refusalFromMemory, count } = counting

  async function reserveAndCount(
    request: GuardedRequest,
    counted: Counted,
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
      // Another request may have counted the last use during the wait.
      refused = (hasWaited ? refusalFromMemory(counted) : undefined) ?? (await count(counted, request))
    } catch (error) {
      cancelReservation(reservation)
      throw error
    }
    if (refused === undefined) return admit(identity, reservation)
    cancelReservation(reservation)
    return refused
  }

  return (request, identity) => {
    const counted = countedOf(identity)
    // The gateway itself responds to a request with `Max-Forwards: 0`, so no use is counted.
    if (counted === undefined || request.head.isLastHop) return admit(identity, undefined)
    return refusalFromMemory(counted) ?? reserveAndCount(request, counted, identity)
  }
}
