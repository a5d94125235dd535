// What the gateway knows of one request; it grows on the way from the socket to the answer.
import type { IncomingMessage } from 'node:http'
import type { Arrival } from './gate/arrival.ts'
import { anonymous, type Identity } from './identity/identity.ts'
import type { Outcome } from './upstream/forward.ts'

export interface Passage {
  readonly arrival: Arrival
  readonly method: string
  /** As the client sent it, without the query and an authority: both may carry secrets. */
  readonly path: string
  /** The route's name, the own endpoint's path, or nothing. */
  readonly route: string | undefined
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  identity: Identity
  /** `forwarded`, `answered`, or the code of the refusal; nothing where the client left before one was taken. */
  decision: string | undefined
  /** How a forwarded exchange ended. */
  outcome: Outcome | undefined
}

export interface Passages {
  begin(request: IncomingMessage): Passage
  of(request: IncomingMessage): Passage
}

export function createPassages(read: (request: IncomingMessage) => Arrival): Passages {
  const passages = new WeakMap<IncomingMessage, Passage>()
  return {
    begin(request) {
      const arrival = read(request)
      const passage: Passage = {
        arrival,
        method: request.method ?? '',
        path: pathOf(request.url ?? '').slice(0, 512),
        route: nameOf(arrival),
        startedAt: performance.now(),
        identity: anonymous,
        decision: undefined,
        outcome: undefined,
      }
      passages.set(request, passage)
      return passage
    },
    of(request) {
      const passage = passages.get(request)
      if (passage === undefined) throw new Error('a request that did not come through the gate')
      return passage
    },
  }
}

function nameOf({ door }: Arrival): string | undefined {
  if (door.kind === 'route') return door.route.name
  return door.kind === 'own' ? door.path : undefined
}

function pathOf(target: string): string {
  return (target.split('?', 1)[0] as string).replace(/^[^/]*:\/\/[^/]*/, '')
}
