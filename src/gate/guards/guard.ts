// The guard type, and how guards are chained when a route is compiled.
import type { GuardName } from '../../config/active-guards.ts'
import type { Identity } from '../../identity/identity.ts'
import type { GuardCounts } from '../../observability/metrics/counters.ts'
import type { GuardFailure, RequestTrace } from '../../observability/tracing/tracing.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import type { Reservation } from '../../upstream/reservation.ts'
import type { RequestHead } from '../parsing/request-head.ts'

/** The part of a request that guards use. */
export interface GuardedRequest {
  readonly head: RequestHead
  /** Undefined if tracing is off. */
  readonly trace: Pick<RequestTrace, 'onGuard' | 'onGuardFailed'> | undefined
  /** Set by the authentication guard, so that the log names the user even if a later guard refuses. */
  identity: Identity
  /**
   * Whether the client has disconnected, or its body was refused by the parser: no use is spent on a response that
   * cannot be delivered.
   */
  isGone(): boolean
  /**
   * Reserves a connection to send the request on, because without one no use may be spent. The caller passes the
   * reservation on or cancels it.
   * @returns a promise if no connection is free
   * @throws Refusal 503 `upstream_unavailable` if none becomes free in time; 429 `rate_limited` if the client holds as
   *   many as it may; ClientDisconnected
   */
  reserveConnection(): Reservation | Promise<Reservation>
  /** Adds headers to the response, whether the upstream or the gateway sends it. */
  addHeaders(headers: Readonly<Record<string, string>>): void
}

/**
 * Decides one thing. `In` is what the previous guard has established and `Out` what this one establishes: brands of
 * the identity, so that a chain with a forgotten or swapped guard does not compile. Synchronous unless it has to
 * wait. A refusal that is known at once may be returned, since throwing one costs as much as all guards together.
 * @throws Refusal, ClientDisconnected, or a store's error; synchronously or as a rejection
 */
export type Guard<In, Out> = (
  request: GuardedRequest,
  input: In,
) => GuardResult<Out> | Promise<GuardResult<Out>>

/** What a guard establishes, or its refusal. */
type GuardResult<Out> = Out | Refusal

/** Runs `second` on what `first` allows. @param second `undefined` if the route does not configure it */
export function andThen<A, B, C>(first: Guard<A, B>, second: Guard<B, C> | undefined): Guard<A, C> {
  // A guard that is not configured allows everything: B is then C in all but the brand.
  if (second === undefined) return first as unknown as Guard<A, C>
  const next = (request: GuardedRequest, result: GuardResult<B>) =>
    result instanceof Refusal ? result : second(request, result)
  return (request, input) => {
    const result = first(request, input)
    return result instanceof Promise ? result.then(settled => next(request, settled)) : next(request, result)
  }
}

/** Returns the same guard. It counts its decisions and has a span in the request's trace. */
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

/** Counts a refusal, or an error if a store failed. A client that disconnected was refused nothing: not counted. */
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
