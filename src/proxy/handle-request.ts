// A request to a route: guarded, then sent on or refused. No framework stands between the socket and the upstream.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { GuardName } from '../config/active-guards.ts'
import { type Asking, countNo, type Guards } from '../gate/guards/chain.ts'
import type { Counted } from '../gate/guards/count-daily-use.ts'
import type { Arrival, Door } from '../gate/parsing/request-head.ts'
import type { Route } from '../gate/routing/route.ts'
import { type OnRefusal, sayNo } from '../http/error-handlers.ts'
import type { Identity } from '../identity/identity.ts'
import type { Decisions } from '../observability/metrics/counters.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Observer, Outcome } from '../upstream/outcome.ts'
import type { Pass } from './forward-request.ts'
import type { Passage } from './request-context.ts'

/** What leads a request to a route, and from there to its upstream. */
export interface ToUpstream {
  readonly guards: Guards
  readonly pass: Pass
}

type ToRoute = Extract<Door, { kind: 'route' }>

export type ServeRoute = (gate: ToUpstream, passage: Passage, door: ToRoute, response: ServerResponse) => void

export function createServeRoute(onRefusal: OnRefusal): ServeRoute {
  return (gate, passage, door, response) => new Routed(gate, onRefusal, passage, door, response).run()
}

/** An object of its own and no closures: one is made for every request. */
class Routed implements Asking, Observer {
  readonly #gate: ToUpstream
  readonly #onRefusal: OnRefusal
  readonly #passage: Passage
  readonly #door: ToRoute
  readonly #response: ServerResponse
  /** Those of the guard that decides at the moment. */
  #deciding: Decisions | undefined

  constructor(
    gate: ToUpstream,
    onRefusal: OnRefusal,
    passage: Passage,
    door: ToRoute,
    response: ServerResponse,
  ) {
    this.#gate = gate
    this.#onRefusal = onRefusal
    this.#passage = passage
    this.#door = door
    this.#response = response
    this.#deciding = undefined
  }

  get arrival(): Arrival {
    return this.#passage.arrival
  }

  get route(): Route {
    return this.#door.route
  }

  run(): void {
    try {
      const ruling = this.#gate.guards(this)
      if (ruling instanceof Promise) {
        ruling.then(said => this.#follow(said)).catch(thrown => this.onRefused(thrown))
      } else this.#follow(ruling)
    } catch (thrown) {
      this.onRefused(thrown)
    }
  }

  #follow(ruling: Counted | Refusal): void {
    if (ruling instanceof Refusal) this.onRefused(ruling)
    else this.#pass(ruling)
  }

  #pass(identity: Counted): void {
    this.onGuard(undefined)
    this.#passage.decision = 'forwarded'
    const response = this.#response
    this.#gate.pass({
      request: response.req as IncomingMessage,
      response,
      arrival: this.#passage.arrival,
      route: this.#door.route,
      target: this.#door.target,
      identity,
      answer: this.#passage.fields,
      trace: this.#passage.trace,
      observer: this,
    })
  }

  onIdentity(identity: Identity): void {
    this.#passage.identity = identity
  }

  onGuard(decisions: Decisions | undefined, name?: GuardName): void {
    if (this.#deciding !== undefined) this.#deciding.pass += 1
    this.#deciding = decisions
    this.#passage.trace?.onGuard(decisions && name)
  }

  onRate(fields: Readonly<Record<string, string>>): void {
    this.#passage.fields = { ...this.#passage.fields, ...fields }
  }

  isGone(): boolean {
    return this.#response.destroyed
  }

  onTried(target: string, duration: number): void {
    this.#passage.upstreamTarget = target
    this.#passage.upstreamDuration = duration
  }

  onEnd(outcome: Outcome): void {
    this.#passage.outcome = outcome
  }

  onRefused(thrown: unknown): void {
    if (this.#deciding !== undefined) {
      const no = countNo(this.#deciding, thrown)
      this.#passage.trace?.onGuardFailed(no, thrown)
    }
    sayNo(this.#response, thrown, this.#onRefusal)
  }
}
