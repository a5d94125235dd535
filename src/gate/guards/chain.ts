// The guards of a route, in the order of CONTRACT §4, each taking what the one before it learned.

import { decides, type GuardName } from '../../config/active-guards.ts'
import type { Identity, KnownUser } from '../../identity/identity.ts'
import type { Decisions, GuardDecisions } from '../../observability/metrics/counters.ts'
import type { GuardFailure, RequestTrace } from '../../observability/tracing/tracing.ts'
import { ClientGone } from '../../refusals/client-gone.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Upstreams } from '../../upstream/targets/upstreams.ts'
import type { Plan } from '../../users/user.ts'
import type { Arrival } from '../parsing/request-head.ts'
import type { Route } from '../routing/route.ts'
import type { Authenticate } from './authenticate.ts'
import type { CountDailyUse, Counted } from './count-daily-use.ts'
import type { Limited, LimitRate, Within } from './rate-limit.ts'
import { requirePlan } from './require-plan.ts'

interface Parts {
  authenticate: Authenticate
  limitRate: LimitRate
  upstreams: Pick<Upstreams, 'get'>
  countDailyUse: CountDailyUse
  /** Where they are counted. */
  decisions: GuardDecisions
}

/**
 * Runs before the body is read. What is refused spends no use: the count comes last.
 * @returns at once where no guard has to wait for anything
 * @throws Refusal by the first guard that says no, where it is not returned; now or in the promise
 * @throws ClientGone
 */
export type Guards = (asking: Asking) => Ruling | Promise<Ruling>

type Ruling = Counted | Refusal

/** A request that asks to be let through. */
export interface Asking {
  readonly arrival: Arrival
  readonly route: Route
  /** Told who calls as soon as that is known, for the log. */
  onIdentity(identity: Identity): void
  /**
   * Told which guard decides now: the one before has let it through, and what is thrown is this one's. Nothing where
   * it is none of those that are counted. @param name of the guard
   */
  onGuard(decisions: Decisions | undefined, name?: GuardName): void
  /** Told where the client stands with the route's rate limit, where there is one: its answer says so. */
  onRate(fields: Readonly<Record<string, string>>): void
  /** Whether the client has left: no use is spent for nobody. */
  isGone(): boolean
}

export function createGuards({
  authenticate,
  limitRate,
  upstreams,
  countDailyUse,
  decisions,
}: Parts): Guards {
  return asking => {
    onGuard(asking, 'authenticate')
    const identity = authenticate(asking.arrival, asking.route)
    return identity instanceof Promise
      ? identity.then(known => limit(asking, known))
      : limit(asking, identity)
  }

  function limit(asking: Asking, identity: Identity): Ruling | Promise<Ruling> {
    asking.onIdentity(identity)
    onGuard(asking, 'rate_limit')
    const within = limitRate(identity, asking.arrival, asking.route)
    return within instanceof Promise ? within.then(taken => admit(asking, taken)) : admit(asking, within)
  }

  function admit(asking: Asking, { identity, fields }: Within): Ruling | Promise<Ruling> {
    const { arrival, route } = asking
    if (fields !== undefined) asking.onRate(fields)
    onGuard(asking, 'plan')
    const admitted = requirePlan(identity, route)
    onGuard(asking, 'max_body')
    if (route.max_body !== undefined && (arrival.contentLength ?? 0) > route.max_body) {
      throw new Refusal('body_too_large')
    }
    onGuard(asking, 'target')
    if (!upstreams.get(route.upstream).isAvailable()) throw new Refusal('upstream_unavailable')
    onGuard(asking, 'free_daily')
    if (asking.isGone()) throw new ClientGone()
    return countDailyUse(admitted, route)
  }

  function onGuard(asking: Asking, name: GuardName): void {
    asking.onGuard(decides[name](asking.route) ? decisions[name] : undefined, name)
  }
}

/**
 * The guards of an endpoint of ours: who calls, and whether the plan fits.
 * @throws Refusal by the first guard that says no; StorageError where the store fails
 */
export type OwnGuards = (
  arrival: Arrival,
  plans: readonly Plan[] | undefined,
  trace?: Pick<RequestTrace, 'onGuard' | 'onGuardFailed'>,
) => Promise<KnownUser>

export function createOwnGuards(authenticate: Authenticate, decisions: GuardDecisions): OwnGuards {
  return async (arrival, plans, trace) => {
    let deciding = decisions.authenticate
    try {
      trace?.onGuard('authenticate')
      const identity = await authenticate(arrival, { auth: 'required' })
      deciding.pass += 1
      deciding = decisions.plan
      trace?.onGuard(plans && 'plan')
      // Only routes have a limit of their own.
      requirePlan(identity as Limited, { plans })
      if (plans !== undefined) deciding.pass += 1
      if (identity.kind !== 'user')
        throw new Error('nobody in particular came through a guard that lets none through')
      trace?.onGuard(undefined)
      return identity
    } catch (thrown) {
      const no = countNo(deciding, thrown)
      trace?.onGuardFailed(no, thrown)
      throw thrown
    }
  }
}

/** A guard’s no, in its count: where a store failed it is none of its own, and a client that left was told none. */
export function countNo(decisions: Decisions, thrown: unknown): GuardFailure {
  if (thrown instanceof ClientGone) return 'client_gone'
  const no = thrown instanceof Refusal && !storeFailed.has(thrown.code) ? 'refuse' : 'error'
  decisions[no] += 1
  return no
}

const storeFailed: ReadonlySet<string> = new Set(['key_check_failed', 'service_unavailable'])
