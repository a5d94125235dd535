// The endpoints that list and end the user's own sessions.
import { isSessionId } from '../accounts/session-list.ts'
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { Operation } from '../openapi/operation.ts'
import { count, instant, message, nullable, openRecord, record, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Type } from '../schema/type.ts'
import { authPrefix } from './auth.ts'
import { type GuardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { SignedInEndpoint } from './signed-in.ts'

const session = record(
  {
    id: text('The session ID, a UUID.'),
    created_at: instant('The time of the login.'),
    last_used_at: instant('The time of the last token refresh, or of the login if there was no refresh.'),
    expires_at: instant('The time when the session expires if its tokens are not refreshed.'),
    user_agent: nullable(text('The `User-Agent` of the login, cut to 200 characters.')),
    current: Type.Boolean({ description: '`true` if the sent access token belongs to this session.' }),
  },
  { title: 'OwnSession', description: 'An active session of the current user.' },
)

export const sessionOperations = {
  list: {
    method: 'GET',
    path: `${authPrefix}/sessions`,
    id: 'listOwnSessions',
    summary: 'Lists the current user’s active sessions, most recently used first',
    caller: 'user',
    responses: {
      200: { description: 'At most 100 sessions.', body: record({ sessions: Type.Array(session) }) },
    },
    refusals: guardRefusals,
  },
  end: {
    method: 'DELETE',
    path: `${authPrefix}/sessions/:id`,
    id: 'endOwnSession',
    summary: 'Ends one session of the current user',
    caller: 'user',
    endsSessions: true,
    params: record({ id: text('The session ID.') }),
    responses: {
      200: {
        description: 'The session has ended. The response is the same if the user has no such session.',
        body: message,
      },
    },
    refusals: guardRefusals,
  },
  endOthers: {
    method: 'DELETE',
    path: `${authPrefix}/sessions`,
    id: 'endOwnSessions',
    summary: 'Ends all sessions of the current user except the current session',
    caller: 'user',
    endsSessions: true,
    body: openRecord({
      all: Type.Optional(Type.Boolean({ description: '`true` also ends the current session.' })),
    }),
    responses: {
      200: {
        description: 'The sessions have ended.',
        body: record({
          message: text('A sentence.'),
          closed: count('The number of ended sessions.'),
        }),
      },
    },
    refusals: guardRefusals,
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  sessions: Pick<SessionStore, 'list' | 'end' | 'endOthers'>
  signedIn: SignedInEndpoint
  clock: Clock
}

const recentSessions = { newest: 'use', limit: 100 } as const

/** Each endpoint throws StorageError when the store fails. */
export function createSessionEndpoints({ sessions, signedIn, clock }: Dependencies): GuardedEndpoint[] {
  const now = () => new Date(clock.now())

  return [
    signedIn(sessionOperations.list, async ({ user, sessionId }) => {
      const recent = await sessions.list(user.id, now(), recentSessions)
      const listed = recent.map(one => ({ ...one, current: one.id === sessionId }))
      return { status: 200, body: { sessions: listed } }
    }),
    signedIn(sessionOperations.end, async ({ user, parameter }) => {
      if (isSessionId(parameter)) await sessions.end(user.id, parameter)
      return { status: 200, body: { message: messages.sessionEnded } }
    }),
    signedIn(sessionOperations.endOthers, async ({ user, sessionId, body }) => {
      const current = body.value('all') === true ? undefined : sessionId
      const closed = await sessions.endOthers(user.id, current, now())
      return { status: 200, body: { message: messages.sessionsEnded, closed } }
    }),
  ]
}
