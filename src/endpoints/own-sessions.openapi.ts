// Requests and responses of the endpoints of a user's own sessions (CONTRACT §12).

import type { Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import { authPrefix } from './auth.openapi.ts'
import { signedInRefusals } from './signed-in.ts'

const { record, text } = terms

const session = record(
  {
    id: text('A UUID.'),
    created_at: terms.instant('When the user signed in.'),
    last_used_at: terms.instant('When its tokens were last exchanged, or the user signed in.'),
    expires_at: terms.instant('When it ends if its tokens are not exchanged.'),
    user_agent: terms.nullable(text('Of the sign-in, cut to 200 characters.')),
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
      200: { description: 'Also where the user has no such session.', body: terms.message },
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
    body: record(
      { all: Type.Optional(Type.Boolean({ description: '`true` ends the current one too.' })) },
      { additionalProperties: true },
    ),
    responses: {
      200: {
        description: 'Ended.',
        body: record({
          message: text('A French sentence.'),
          closed: terms.count('Sessions that were active.'),
        }),
      },
    },
    refusals: signedInRefusals,
  },
} as const satisfies Record<string, Operation>
