// The endpoints that list and end the user's own sessions.
import { isSessionId } from '../accounts/session-list.ts'
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { Operation } from '../openapi/operation.ts'
import { count, instant, message, nullable, openRecord, record, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Type } from '../schema/type.ts'
import { authPrefix } from './auth.ts'
import type { GuardedEndpoint } from './local-endpoint.ts'
import { type SignedInEndpoint, signedInRefusals } from './signed-in.ts'

const session = record(
  {
    id: text('A UUID.'),
    created_at: instant('When the user signed in.'),
    last_used_at: instant('When its tokens were last exchanged, or the user signed in.'),
    expires_at: instant('When it ends if its tokens are not exchanged.'),
    user_agent: nullable(text('Of the sign-in, cut to 200 characters.')),
    current: Type.Boolean({ description: 'Whether the access token that was sent is of this session.' }),
  },
  { title: 'OwnSession', description: 'Where the user is signed in.' },
)

export const sessionOperations = {
  list: {
    method: 'GET',
    path: `${authPrefix}/sessions`,
    id: 'listOwnSessions',
    summary: 'Lists where the user is signed in, the newest use first',
    caller: 'user',
    responses: {
      200: { description: 'The 100 newest.', body: record({ sessions: Type.Array(session) }) },
    },
    refusals: signedInRefusals,
  },
  end: {
    method: 'DELETE',
    path: `${authPrefix}/sessions/:id`,
    id: 'endOwnSession',
    summary: 'Ends one session',
    caller: 'user',
    endsSessions: true,
    params: record({ id: text('The session’s id.') }),
    responses: {
      200: { description: 'Also where the user has no such session.', body: message },
    },
    refusals: signedInRefusals,
  },
  endOthers: {
    method: 'DELETE',
    path: `${authPrefix}/sessions`,
    id: 'endOwnSessions',
    summary: 'Ends all sessions but the current one',
    caller: 'user',
    endsSessions: true,
    body: openRecord({
      all: Type.Optional(Type.Boolean({ description: '`true` ends the current one too.' })),
    }),
    responses: {
      200: {
        description: 'Ended.',
        body: record({
          message: text('A French sentence.'),
          closed: count('Sessions that were active.'),
        }),
      },
    },
    refusals: signedInRefusals,
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
