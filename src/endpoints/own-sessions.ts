// A user's own sessions: listed, and ended one by one or all but the current one (CONTRACT §12, "Sessions").
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import { messages } from '../refusals/catalog.ts'
import type { GuardedEndpoint } from './local-endpoint.ts'
import { sessionOperations } from './own-sessions.openapi.ts'
import type { SignedInEndpoint } from './signed-in.ts'

interface Dependencies {
  sessions: Pick<SessionStore, 'list' | 'end' | 'endOthers'>
  signedIn: SignedInEndpoint
  clock: Clock
}

/** Shown of one user. */
const recentSessions = { newest: 'use', limit: 100 } as const

/** Each throws StorageError when the store fails. */
export function createSessionEndpoints({ sessions, signedIn, clock }: Dependencies): GuardedEndpoint[] {
  const now = () => new Date(clock.now())

  return [
    signedIn(sessionOperations.list, async ({ user, sessionId }) => {
      const recent = await sessions.list(user.id, now(), recentSessions)
      const listed = recent.map(one => ({ ...one, current: one.id === sessionId }))
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
