// The guards of a route, in the order of CONTRACT §4, each taking what the one before it learned.
import type { Plan } from '../accounts/user.ts'
import type { Identity, KnownUser } from '../identity/identity.ts'
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Arrival } from './arrival.ts'
import type { Authenticate } from './authenticate.ts'
import type { CountDailyUse, Counted } from './count-daily-use.ts'
import type { Limited, LimitRate, Within } from './limit-rate.ts'
import { requirePlan } from './require-plan.ts'
import type { Route } from './route.ts'

interface Parts {
  authenticate: Authenticate
  limitRate: LimitRate
  upstreams: Upstreams
  countDailyUse: CountDailyUse
}

/**
 * Runs before the body is read. What is refused spends no use: the count comes last.
 * @returns at once where no guard has to wait for anything
 * @throws Refusal by the first guard that says no; now or in the promise
 * @throws ClientGone
 */
export type Guards = (asking: Asking) => Counted | Promise<Counted>

/** A request that asks to be let through. */
export interface Asking {
  readonly arrival: Arrival
  readonly route: Route
  /** Told who calls as soon as that is known, for the log. */
  onIdentity(identity: Identity): void
  /** Told where the client stands with the route's rate limit, where there is one: its answer says so. */
  onRate(fields: Readonly<Record<string, string>>): void
  /** Whether the client has left: no use is spent for nobody. */
  isGone(): boolean
}

export function createGuards({ authenticate, limitRate, upstreams, countDailyUse }: Parts): Guards {
  return asking => {
    const identity = authenticate(asking.arrival, asking.route)
    return identity instanceof Promise
      ? identity.then(known => limit(asking, known))
      : limit(asking, identity)
  }

  function limit(asking: Asking, identity: Identity): Counted | Promise<Counted> {
    asking.onIdentity(identity)
    const within = limitRate(identity, asking.arrival, asking.route)
    return within instanceof Promise ? within.then(taken => admit(asking, taken)) : admit(asking, within)
  }

  function admit(asking: Asking, { identity, fields }: Within): Counted | Promise<Counted> {
    const { arrival, route } = asking
    if (fields !== undefined) asking.onRate(fields)
    const admitted = requirePlan(identity, route)
    if (route.max_body !== undefined && (arrival.contentLength ?? 0) > route.max_body) {
      throw new Refusal('body_too_large')
    }
    if (!upstreams.get(route.upstream).isAvailable()) throw new Refusal('upstream_unavailable')
    if (asking.isGone()) throw new ClientGone()
    return countDailyUse(admitted, route)
  }
}

/**
 * The guards of an endpoint of ours: who calls, and whether the plan fits.
 * @throws Refusal by the first guard that says no; StorageError where the store fails
 */
export type OwnGuards = (arrival: Arrival, plans: readonly Plan[] | undefined) => Promise<KnownUser>

export function createOwnGuards(authenticate: Authenticate): OwnGuards {
  return async (arrival, plans) => {
    const identity = await authenticate(arrival, { auth: 'required' })
    // Only routes have a limit of their own.
    requirePlan(identity as Limited, { plans })
    if (identity.kind !== 'user')
      throw new Error('nobody in particular came through a guard that lets none through')
    return identity
  }
}
