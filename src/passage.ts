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
  /** What the answer carries whoever gives it; nothing where there is nothing of the kind. */
  fields: Readonly<Record<string, string>> | undefined
  /** `forwarded`, `answered`, or the code of the refusal; nothing where the client left before one was taken. */
  decision: string | undefined
  /** How a forwarded exchange ended. */
  outcome: Outcome | undefined
}

export interface Passages {
  begin(request: IncomingMessage): Passage
  of(request: IncomingMessage): Passage
}

// On the request itself: a WeakMap with an entry a request costs the garbage collector more than the gate does.
const carried = Symbol('passage')
type Carrying = IncomingMessage & { [carried]?: Passage }

export function createPassages(read: (request: IncomingMessage) => Arrival): Passages {
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
        fields: arrival.cors,
        decision: undefined,
        outcome: undefined,
      }
      ;(request as Carrying)[carried] = passage
      return passage
    },
    of(request) {
      const passage = (request as Carrying)[carried]
      if (passage === undefined) throw new Error('a request that did not come through the gate')
      return passage
    },
  }
}

function nameOf({ door }: Arrival): string | undefined {
  if (door.kind === 'route') return door.route.name
  if (door.kind === 'preflight') return door.name
  return door.kind === 'own' ? door.path : undefined
}

function pathOf(target: string): string {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  return path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')
}
