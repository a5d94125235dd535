// Describes the requests and responses of the operators' account endpoints.
import { accountExport } from '../../openapi/account-export.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { bodilessRefusals, operatorRefusals } from './admin-endpoint.ts'

const { record } = terms

const params = record({ id: terms.id('The user’s id.') })
const unknownUser = { 404: ['user_not_found'] } as const
const readingOfUser = {
  caller: 'operator',
  params,
  refusals: mergeRefusals(operatorRefusals, unknownUser),
} as const
/** A change that takes no body. */
const changeOfUser = { ...readingOfUser, refusals: mergeRefusals(bodilessRefusals, unknownUser) }
const session = record(
  {
    id: terms.text('A UUID, the `sid` of its tokens.'),
    created_at: terms.instant('When the user signed in.'),
    expires_at: terms.instant('When it ends if it is not refreshed.'),
  },
  { title: 'Session', description: 'Where the user is signed in.' },
)
const sessionWithDevice = record({
  ...session.properties,
  user_agent: terms.nullable(terms.text('`User-Agent` of the login, cut to 200 characters.')),
})
const email = terms.text('With an `@`, 254 characters at most; stripped, lower-cased and in Unicode NFC.')
const password = terms.text('8 to 1024 characters.')
const details = record(
  {
    ...terms.user.properties,
    subscription: terms.nullable(
      record({
        plan: terms.plan,
        created_at: terms.instant('When it began.'),
        updated_at: terms.instant('When the plan was last changed.'),
      }),
    ),
    sessions: Type.Optional(
      Type.Array(sessionWithDevice, { description: 'The active ones. Not for role `billing`.' }),
    ),
    api_token: Type.Optional(
      terms.nullable(
        record({
          created_at: terms.instant('When it was made.'),
          last_used_at: terms.nullable(terms.instant('About when it was last used.')),
        }),
      ),
    ),
    webhook: Type.Optional(
      terms.nullable(
        record({
          url: terms.text('For role `read` the origin alone.'),
          created_at: terms.instant('When it was registered.'),
        }),
      ),
    ),
  },
  { title: 'UserDetails', description: 'A user, and what is stored with the record.' },
)

export const userOperations = {
  show: {
    method: 'GET',
    path: '/admin/v1/users/:id',
    id: 'showUser',
    summary: 'Shows one user',
    description: 'Of the active sessions the 100 newest, the oldest first: the list of sessions has all.',
    ...readingOfUser,
    roles: ['read', 'support', 'billing'],
    responses: { 200: { description: 'The record and all that is stored with it.', body: details } },
  },
  create: {
    method: 'POST',
    path: '/admin/v1/users',
    id: 'createUser',
    summary: 'Creates a user',
    description: 'Without a password nobody can sign in until one is set or reset. Stands in the audit.',
    caller: 'operator',
    roles: [],
    body: record({
      email,
      password: Type.Optional(password),
      plan: Type.Optional(terms.plan),
      email_verified: Type.Optional(Type.Boolean({ description: 'Whether the email counts as verified.' })),
    }),
    responses: { 201: { description: 'The user.', body: terms.user } },
    refusals: mergeRefusals(operatorRefusals, {
      400: ['request_invalid', 'email_invalid', 'plan_invalid', 'password_too_short', 'password_too_long'],
      409: ['email_taken'],
      413: ['body_too_large'],
    }),
  },
  remove: {
    method: 'DELETE',
    path: '/admin/v1/users/:id',
    id: 'deleteUser',
    summary: 'Deletes a user and all that is theirs',
    description: 'The email is free again. Stands in the audit, by the id.',
    ...changeOfUser,
    roles: [],
    responses: { 204: { description: 'The user is gone.' } },
  },
  resetUsage: {
    method: 'POST',
    path: '/admin/v1/users/:id/reset-usage',
    id: 'resetUsage',
    summary: 'Gives a user the uses of the day back',
    description: 'Stands in the audit.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 200: { description: 'The user, as changed.', body: terms.user } },
  },
  sendReset: {
    method: 'POST',
    path: '/admin/v1/users/:id/send-reset',
    id: 'sendReset',
    summary: 'Sends a user the mail of a forgotten password',
    description: 'Outside the limits of that. Stands in the audit.',
    caller: 'operator',
    roles: ['support'],
    params,
    responses: { 202: { description: 'It is asked for.', body: terms.message } },
    refusals: mergeRefusals(bodilessRefusals, unknownUser, {
      409: ['user_inactive'],
      501: ['mail_not_configured'],
    }),
  },
  export: {
    method: 'GET',
    path: '/admin/v1/users/:id/export',
    id: 'exportUser',
    summary: 'Exports all that is kept of a user',
    description: 'As the user’s own export. Stands in the audit.',
    ...readingOfUser,
    roles: ['support'],
    responses: {
      200: {
        description: 'For a file.',
        headers: { 'content-disposition': '`attachment`' },
        body: accountExport,
      },
    },
  },
  setPassword: {
    method: 'POST',
    path: '/admin/v1/users/:id/password',
    id: 'setPassword',
    summary: 'Sets a user’s password, and ends all sessions',
    description: 'Stands in the audit, without the password.',
    caller: 'operator',
    roles: [],
    params,
    body: record({ password }),
    responses: { 204: { description: 'It is set.' } },
    refusals: mergeRefusals(operatorRefusals, unknownUser, {
      400: ['request_invalid', 'password_too_short', 'password_too_long'],
      413: ['body_too_large'],
    }),
  },
  change: {
    method: 'PATCH',
    path: '/admin/v1/users/:id',
    id: 'changeUser',
    summary:
      'Changes a user’s plan or email, whether that counts as verified, or lets a user in or keeps one out',
    description:
      'In force from the user’s next request on. What is not named stays. Another email is not verified unless that is said, and ends all sessions. Stands in the audit, of an email only that it was set.',
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
      email: Type.Optional(email),
    }),
    responses: { 200: { description: 'The user, as changed.', body: terms.user } },
    refusals: mergeRefusals(operatorRefusals, unknownUser, {
      400: ['request_invalid', 'plan_invalid', 'email_invalid'],
      409: ['email_taken'],
      413: ['body_too_large'],
    }),
  },
  sessions: {
    method: 'GET',
    path: '/admin/v1/users/:id/sessions',
    id: 'listSessions',
    summary: 'Lists a user’s active sessions, the oldest first',
    ...readingOfUser,
    roles: ['read', 'support'],
    responses: { 200: { description: 'All of them.', body: record({ sessions: Type.Array(session) }) } },
  },
  endSessions: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/sessions',
    id: 'endSessions',
    summary: 'Ends all sessions of a user',
    description: 'Access tokens that are out stay good until they expire. Stands in the audit.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 200: { description: 'They are ended.', body: terms.message } },
  },
  endSession: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/sessions/:session',
    id: 'endUserSession',
    summary: 'Ends one session of a user',
    description: 'Also where there is none of that id. Stands in the audit.',
    ...changeOfUser,
    roles: ['support'],
    params: record({ id: terms.id('The user’s id.'), session: terms.text('The session’s id.') }),
    responses: { 204: { description: 'The user has no such session.' } },
  },
  revokeApiToken: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/api-token',
    id: 'revokeUserApiToken',
    summary: 'Revokes a user’s API key',
    description: 'Also where there is none. Stands in the audit.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 204: { description: 'The user has no key.' } },
  },
  removeWebhook: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/webhook',
    id: 'removeUserWebhook',
    summary: 'Removes a user’s webhook, and drops what waits for it',
    description: 'Also where there is none. Stands in the audit.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 204: { description: 'The user has no webhook.' } },
  },
} as const satisfies Record<string, Operation>
