// What a guard is, and how guards are put in a row when a route is compiled.
import type { GuardName } from '../../config/active-guards.ts'
import type { Identity } from '../../identity/identity.ts'
import type { GuardCounts } from '../../observability/metrics/counters.ts'
import type { GuardFailure, RequestTrace } from '../../observability/tracing/tracing.ts'
import { ClientDisconnected } from '../../refusals/client-gone.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { RequestHead } from '../parsing/request-head.ts'

/** A request in the hands of the guards. */
export interface GuardedRequest {
  readonly head: RequestHead
  /** Nothing where there are no traces. */
  readonly trace: Pick<RequestTrace, 'onGuard' | 'onGuardFailed'> | undefined
  /** Set by the authentication guard: the log names the user also where a later guard refuses. */
  identity: Identity
  /** The client has left: no use is spent on an answer that nobody would read. */
  isGone(): boolean
  /** Adds headers to the answer, whatever it becomes. */
  addHeaders(headers: Readonly<Record<string, string>>): void
}

/**
 * Decides one thing. `In` is what the guard before it has established and `Out` what this one establishes: brands of
 * the identity, so that a row with a guard forgotten or swapped does not compile. It answers at once unless it has to
 * wait. A refusal that is known at once may be returned, since throwing one costs as much as all guards together.
 * @throws Refusal, ClientGone, or what a store throws; now or in the promise
 */
export type Guard<In, Out> = (request: GuardedRequest, input: In) => Ruling<Out> | Promise<Ruling<Out>>

export type Ruling<Out> = Out | Refusal

/** Runs `second` on what `first` lets through. @param second nothing where the route does not ask for it */
export function andThen<A, B, C>(first: Guard<A, B>, second: Guard<B, C> | undefined): Guard<A, C> {
  // The guard that a route does not ask for lets everything through: B is then C in all but the brand.
  if (second === undefined) return first as unknown as Guard<A, C>
  const next = (request: GuardedRequest, ruling: Ruling<B>) =>
    ruling instanceof Refusal ? ruling : second(request, ruling)
  return (request, input) => {
    const ruling = first(request, input)
    return ruling instanceof Promise ? ruling.then(settled => next(request, settled)) : next(request, ruling)
  }
}

/** The same guard, with its decisions counted and its span in the request's trace. */
export function counted<In, Out>(
  name: GuardName,
  decisions: GuardCounts,
  guard: Guard<In, Out>,
): Guard<In, Out> {
  function record(request: GuardedRequest, ruling: Ruling<Out>): Ruling<Out> {
    if (ruling instanceof Refusal) recordFailure(request, decisions, ruling)
    else decisions.pass += 1
    return ruling
  }
  function fail(request: GuardedRequest, thrown: unknown): never {
    recordFailure(request, decisions, thrown)
    throw thrown
  }
  return (request, input) => {
    request.trace?.onGuard(name)
    let ruling: Ruling<Out> | Promise<Ruling<Out>>
    try {
      ruling = guard(request, input)
    } catch (thrown) {
      return fail(request, thrown)
    }
    return ruling instanceof Promise
      ? ruling.then(
          settled => record(request, settled),
          thrown => fail(request, thrown),
        )
      : record(request, ruling)
  }
}

/** Counts a guard's no. Where a store failed it is an error and not the guard's; a client that left was told none. */
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
