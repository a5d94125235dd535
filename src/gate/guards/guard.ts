// Defines the guard type, and chains guards when a route is compiled.
import type { GuardName } from '../../config/active-guards.ts'
import type { Identity } from '../../identity/identity.ts'
import type { GuardCounts } from '../../observability/metrics/counters.ts'
import type { GuardFailure, RequestTrace } from '../../observability/tracing/tracing.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import type { Reservation } from '../../upstream/reservation.ts'
import type { RequestHead } from '../parsing/request-head.ts'

export interface GuardedRequest {
  readonly head: RequestHead
  /** Undefined if tracing is off. */
  readonly trace: Pick<RequestTrace, 'onGuard' | 'onGuardFailed'> | undefined
  /**
   * The identity of the caller. The authentication guard sets it, so that the log contains the user even if a later
   * guard refuses the request.
   */
  identity: Identity
  /** Returns whether the client has disconnected or the parser has rejected the body. If so, no use is counted. */
  isGone(): boolean
  /**
   * Reserves an upstream connection before a use is counted. Otherwise, a use could be counted for a request that gets
   * no connection. The caller must pass the reservation on or cancel it.
   * @returns a promise if no connection is free; undefined if the gateway does not forward the request
   * @throws Refusal 503 `upstream_unavailable` if no connection becomes free in time
   * @throws Refusal 429 `rate_limited` if the client already uses its share of the connections
   * @throws ClientDisconnected if the client leaves during the wait
   */
  reserveConnection(): Reservation | undefined | Promise<Reservation>
  addHeaders(headers: Readonly<Record<string, string>>): void
}

/**
 * A guard makes one decision. `In` is the result of the previous guard, and `Out` the result of this guard. Both types
 * are brands: they only mark, for the compiler, which guards have allowed the request. So a chain with a missing or
 * swapped guard does not compile. A guard is synchronous unless it has to wait. It can return a refusal instead of
 * throwing it, because a throw takes as long as all guards together.
 * @throws Refusal, ClientDisconnected, or an error of a store; the guard throws it or rejects its promise with it
 */
export type Guard<In, Out> = (
  request: GuardedRequest,
  input: In,
) => GuardResult<Out> | Promise<GuardResult<Out>>

type GuardResult<Out> = Out | Refusal

/**
 * Runs `second` if `first` allows the request.
 * @param second the next guard; `undefined` if the route does not configure it
 */
export function andThen<A, B, C>(first: Guard<A, B>, second: Guard<B, C> | undefined): Guard<A, C> {
  // Without a second guard, the first guard decides. The cast is safe, because B and C differ only in their brand.
  if (second === undefined) return first as unknown as Guard<A, C>
  const next = (request: GuardedRequest, result: GuardResult<B>) =>
    result instanceof Refusal ? result : second(request, result)
  return (request, input) => {
    const result = first(request, input)
    return result instanceof Promise ? result.then(settled => next(request, settled)) : next(request, result)
  }
}

/** Returns a guard that runs `guard`, counts its decisions, and adds a span to the request's trace. */
export function recorded<In, Out>(
  name: GuardName,
  decisions: GuardCounts,
  guard: Guard<In, Out>,
): Guard<In, Out> {
  function record(request: GuardedRequest, result: GuardResult<Out>): GuardResult<Out> {
    if (result instanceof Refusal) recordFailure(request, decisions, result)
    else decisions.pass += 1
    return result
  }
  function fail(request: GuardedRequest, thrown: unknown): never {
    recordFailure(request, decisions, thrown)
    throw thrown
  }
  return (request, input) => {
    request.trace?.onGuard(name)
    let result: GuardResult<Out> | Promise<GuardResult<Out>>
    try {
      result = guard(request, input)
    } catch (thrown) {
      return fail(request, thrown)
    }
    return result instanceof Promise
      ? result.then(
          settled => record(request, settled),
          thrown => fail(request, thrown),
        )
      : record(request, result)
  }
}

/**
 * Counts the failure of a guard: as an error if a store failed, otherwise as a refusal. If the client disconnected,
 * nothing is counted.
 */
function recordFailure({ trace }: GuardedRequest, decisions: GuardCounts, thrown: unknown): void {
  const failure = failureOf(thrown)
  if (failure !== 'client_gone') decisions[failure] += 1
  trace?.onGuardFailed(failure, thrown)
}

function failureOf(thrown: unknown): GuardFailure {
  if (thrown instanceof ClientDisconnected) return 'client_gone'
  return thrown instanceof Refusal && !storeFailed.has(thrown.code) ? 'refuse' : 'error'
}

const storeFailed: ReadonlySet<string> = new Set(['key_check_failed', 'service_unavailable'])
