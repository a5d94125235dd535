// The guards of a route, in the order of CONTRACT §4, each taking what the one before it learned.
import type { Identity } from '../identity/identity.ts'
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Arrival } from './arrival.ts'
import type { Authenticate } from './authenticate.ts'
import type { CountDailyUse, Counted } from './count-daily-use.ts'
import { requirePlan } from './require-plan.ts'
import type { Route } from './route.ts'

interface Parts {
  authenticate: Authenticate
  countDailyUse: CountDailyUse
}

/**
 * Runs before the body is read. What is refused spends no use: the count comes last.
 * @throws Refusal by the first guard that says no
 * @throws ClientGone
 */
export type Guards = (arrival: Arrival, route: Route, asking: Asking) => Promise<Counted>

interface Asking {
  /** Told who calls as soon as that is known, for the log. */
  onIdentity(identity: Identity): void
  /** Whether the client has left: no use is spent for nobody. */
  isGone(): boolean
}

export function createGuards({ authenticate, countDailyUse }: Parts): Guards {
  return async (arrival, route, { onIdentity, isGone }) => {
    const identity = await authenticate(arrival, route)
    onIdentity(identity)
    const admitted = requirePlan(identity, route)
    if (route.max_body !== undefined && (arrival.contentLength ?? 0) > route.max_body) {
      throw new Refusal('body_too_large')
    }
    if (isGone()) throw new ClientGone()
    return countDailyUse(admitted, route)
  }
}
