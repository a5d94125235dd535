// A user's own sessions: listed, and ended one by one or all but the current one (CONTRACT §12, "Sessions").
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { AuthenticatedRequest, EndpointResponse, GuardedEndpoint } from './endpoint.ts'
import { sessionOperations } from './sessions.openapi.ts'

interface Dependencies {
  sessions: Pick<SessionStore, 'list' | 'isLive' | 'end' | 'endOthers'>
  clock: Clock
}

/** Shown of one user. */
const maxSessions = 100

/** Each throws StorageError when the store fails. */
export function createSessionEndpoints({ sessions, clock }: Dependencies): GuardedEndpoint[] {
  const now = () => new Date(clock.now())

  /** Only an access token opens these, and only while its session lives: an API key is not a person. */
  function signedIn(
    operation: GuardedEndpoint['operation'],
    handle: (request: AuthenticatedRequest) => Promise<EndpointResponse>,
  ): GuardedEndpoint {
    return {
      kind: 'guarded',
      operation,
      plans: undefined,
      async handle(request) {
        const { credential, user, sessionId } = request
        if (credential === 'api_token') throw new Refusal('bearer_required')
        if (sessionId !== undefined && !(await sessions.isLive(user.id, sessionId, now()))) {
          throw new Refusal('token_invalid', {
            headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
          })
        }
        return handle(request)
      },
    }
  }

  return [
    signedIn(sessionOperations.list, async ({ user, sessionId }) => {
      const active = await sessions.list(user.id, now())
      const newest = active.toSorted((a, b) => b.last_used_at.getTime() - a.last_used_at.getTime())
      const listed = newest.slice(0, maxSessions).map(one => ({ ...one, current: one.id === sessionId }))
      return { status: 200, body: { sessions: listed } }
    }),
    signedIn(sessionOperations.end, async ({ user, parameter }) => {
      if (isUuid(parameter)) await sessions.end(user.id, parameter)
      return { status: 200, body: { message: messages.sessionEnded } }
    }),
    signedIn(sessionOperations.endOthers, async ({ user, sessionId, body }) => {
      const current = body.value('all') === true ? undefined : sessionId
      const closed = await sessions.endOthers(user.id, current, now())
      return { status: 200, body: { message: messages.sessionsEnded, closed } }
    }),
  ]
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}
