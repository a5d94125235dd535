// Where every request ends: it is looked at once, counted, and its line and span are written.
import type { ServerResponse } from 'node:http'
import { authPrefix } from '../endpoints/auth.openapi.ts'
import type { Door } from '../gate/parsing/request-head.ts'
import type { Metrics } from '../observability/metrics/metrics.ts'
import { outcomeOf, type Passage, passageOf, servedUnder } from './request-context.ts'

/** A request whose answer is over, or whose client has gone. */
export interface Ended {
  readonly passage: Passage
  readonly method: string
  /** The route's name, the own endpoint's path, or nothing. */
  readonly route: string | undefined
  /** Nothing where the client left before anything was answered. */
  readonly status: number | undefined
  /** Milliseconds from its arrival. */
  readonly duration: number
}

/** To be called once for each, whatever became of it. */
export type EndRequest = (response: ServerResponse) => void

export function createRequestEnd({ requests, tallies }: Pick<Metrics, 'requests' | 'tallies'>): EndRequest {
  return response => {
    const passage = passageOf(response.req)
    const { door } = passage.arrival
    const ended: Ended = {
      passage,
      method: response.req.method ?? '',
      route: nameOf(door),
      status: response.headersSent ? response.statusCode : undefined,
      duration: performance.now() - passage.startedAt,
    }
    requests.count(ended)
    if (door.kind === 'own' && door.path.startsWith(authPaths)) {
      tallies.authenticated(door.path.slice(authPaths.length), authOutcomeOf(passage))
    }
    servedUnder(passage).logRequest?.(ended)
    passage.trace?.end({
      status: ended.status,
      decision: passage.decision ?? 'client_gone',
      outcome: outcomeOf(passage),
    })
  }
}

const authPaths = `${authPrefix}/`

function authOutcomeOf({ decision = 'client_gone' }: Passage): string {
  return decision === 'answered' ? 'success' : decision
}

function nameOf(door: Door): string | undefined {
  if (door.kind === 'route') return door.route.name
  if (door.kind === 'preflight') return door.name
  return door.kind === 'own' ? door.path : undefined
}
