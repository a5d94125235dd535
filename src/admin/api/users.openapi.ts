// Requests and responses of the operators' account endpoints (CONTRACT §7).
import { Type } from '../../config/schema/type.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { operatorRefusals } from './endpoint.ts'

const { record } = terms

const params = record({ id: terms.id('The user’s id.') })
const unknownUser = { 404: ['user_not_found'] } as const
const session = record(
  {
    id: terms.text('A UUID, the `sid` of its tokens.'),
    created_at: terms.instant('When the user signed in.'),
    expires_at: terms.instant('When it ends if it is not refreshed.'),
  },
  { title: 'Session', description: 'Where the user is signed in.' },
)

export const userOperations = {
  list: {
    method: 'GET',
    path: '/admin/v1/users',
    id: 'listUsers',
    summary: 'Lists users in the order of their ids, inactive ones too',
    caller: 'operator',
    roles: ['read', 'support', 'billing'],
    query: record({
      email: Type.Optional(terms.text('Only the user with this email, in any letter case.')),
      plan: Type.Optional(terms.plan),
      cursor: terms.cursor,
    }),
    responses: {
      200: {
        description: 'At most 100 users.',
        body: record({ users: Type.Array(terms.user), next_cursor: terms.nextCursor }),
      },
    },
    refusals: mergeRefusals(operatorRefusals, { 400: ['request_invalid', 'plan_invalid', 'email_invalid'] }),
  },
  show: {
    method: 'GET',
    path: '/admin/v1/users/:id',
    id: 'showUser',
    summary: 'Shows one user',
    caller: 'operator',
    roles: ['read', 'support', 'billing'],
    params,
    responses: { 200: { description: 'The user.', body: terms.user } },
    refusals: mergeRefusals(operatorRefusals, unknownUser),
  },
  change: {
    method: 'PATCH',
    path: '/admin/v1/users/:id',
    id: 'changeUser',
    summary:
      'Changes a user’s plan, whether the email counts as verified, or lets a user in or keeps one out',
    description: 'In force from the user’s next request on. What is not named stays. Stands in the audit.',
    caller: 'operator',
    roles: ['billing'],
    fieldsOf: { billing: ['plan'] },
    params,
    body: record({
      plan: Type.Optional(terms.plan),
      is_active: Type.Optional(
        Type.Unsafe<0 | 1 | boolean>({ enum: [0, 1, false, true], description: '`0` keeps the user out.' }),
      ),
      email_verified: Type.Optional(
        Type.Boolean({ description: '`true` counts the email as verified from now on, if it was not.' }),
      ),
    }),
    responses: { 200: { description: 'The user, as changed.', body: terms.user } },
    refusals: mergeRefusals(operatorRefusals, unknownUser, {
      400: ['request_invalid', 'plan_invalid'],
      413: ['body_too_large'],
    }),
  },
  sessions: {
    method: 'GET',
    path: '/admin/v1/users/:id/sessions',
    id: 'listSessions',
    summary: 'Lists a user’s active sessions, the oldest first',
    caller: 'operator',
    roles: ['read', 'support'],
    params,
    responses: { 200: { description: 'All of them.', body: record({ sessions: Type.Array(session) }) } },
    refusals: mergeRefusals(operatorRefusals, unknownUser),
  },
  endSessions: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/sessions',
    id: 'endSessions',
    summary: 'Ends all sessions of a user',
    description: 'Access tokens that are out stay good until they expire. Stands in the audit.',
    caller: 'operator',
    roles: ['support'],
    params,
    responses: { 200: { description: 'They are ended.', body: terms.message } },
    refusals: mergeRefusals(operatorRefusals, unknownUser),
  },
} as const satisfies Record<string, Operation>
