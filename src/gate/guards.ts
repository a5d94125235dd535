// The guards of a route, in the order of CONTRACT §4, each taking what the one before it learned.
import type { Identity } from '../identity/identity.ts'
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Arrival } from './arrival.ts'
import type { Authenticate } from './authenticate.ts'
import type { CountDailyUse, Counted } from './count-daily-use.ts'
import type { LimitRate } from './limit-rate.ts'
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
 * @throws Refusal by the first guard that says no
 * @throws ClientGone
 */
export type Guards = (arrival: Arrival, route: Route, asking: Asking) => Promise<Counted>

interface Asking {
  /** Told who calls as soon as that is known, for the log. */
  onIdentity(identity: Identity): void
  /** Told where the client stands with the route's rate limit, where there is one: its answer says so. */
  onRate(fields: Readonly<Record<string, string>>): void
  /** Whether the client has left: no use is spent for nobody. */
  isGone(): boolean
}

export function createGuards({ authenticate, limitRate, upstreams, countDailyUse }: Parts): Guards {
  return async (arrival, route, { onIdentity, onRate, isGone }) => {
    const identity = await authenticate(arrival, route)
    onIdentity(identity)
    const within = await limitRate(identity, arrival, route)
    if (within.fields !== undefined) onRate(within.fields)
    const admitted = requirePlan(within.identity, route)
    if (route.max_body !== undefined && (arrival.contentLength ?? 0) > route.max_body) {
      throw new Refusal('body_too_large')
    }
    if (!upstreams.get(route.upstream).isAvailable()) throw new Refusal('upstream_unavailable')
    if (isGone()) throw new ClientGone()
    return countDailyUse(admitted, route)
  }
}
