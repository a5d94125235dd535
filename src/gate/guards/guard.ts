// The guard type, and how guards are chained when a route is compiled.
import type { GuardName } from '../../config/active-guards.ts'
import type { Identity } from '../../identity/identity.ts'
import type { GuardCounts } from '../../observability/metrics/counters.ts'
import type { GuardFailure, RequestTrace } from '../../observability/tracing/tracing.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
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
   * Waits for a connection to send the request on, if none is free, and keeps it until the request is sent or refused:
   * without one no use may be spent (CONTRACT §4). One that is free is counted for the client, but not taken yet: while
   * the store is slow, uses being counted would keep it from other requests.
   * @returns undefined if one is free
   * @throws Refusal 503 `upstream_unavailable` if none becomes free in time; 429 `rate_limited` if the client holds as
   *   many as it may; ClientDisconnected
   */
  awaitConnection(): Promise<void> | undefined
  /** Adds headers to the response, whether the upstream or the gateway sends it. */
  addHeaders(headers: Readonly<Record<string, string>>): void
}

/**
 * Decides one thing. `In` is what the previous guard has established and `Out` what this one establishes: brands of
 * the identity, so that a chain with a forgotten or swapped guard does not compile. Synchronous unless it has to
 * wait. A refusal that is known at once may be returned, since throwing one costs as much as all guards together.
 * @throws Refusal, ClientDisconnected, or a store's error; synchronously or as a rejection
 */
export type Guard<In, Out> = (request: GuardedRequest, input: In) => Ruling<Out> | Promise<Ruling<Out>>

type Ruling<Out> = Out | Refusal

/** Runs `second` on what `first` allows. @param second `undefined` if the route does not configure it */
export function andThen<A, B, C>(first: Guard<A, B>, second: Guard<B, C> | undefined): Guard<A, C> {
  // A guard that is not configured allows everything: B is then C in all but the brand.
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
