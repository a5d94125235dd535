// Describes the requests and responses of the operators' account endpoints.
import { accountExport } from '../../openapi/account-export.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { bodilessRefusals, operatorRefusals } from './admin-endpoint.ts'
import { details, session } from './user-details.openapi.ts'

const { record } = terms

const params = record({ id: terms.id('The user ID.') })
const unknownUser = { 404: ['user_not_found'] } as const
const readingOfUser = {
  caller: 'operator',
  params,
  refusals: mergeRefusals(operatorRefusals, unknownUser),
} as const
/** The common parts of the changes whose request has no body. */
const changeOfUser = { ...readingOfUser, refusals: mergeRefusals(bodilessRefusals, unknownUser) }
const email = terms.text(
  'An email of at most 254 characters. It is stored without surrounding white space, in lower case and in Unicode NFC.',
)
const password = terms.text('A password of 8 to 1,024 characters.')
export const userOperations = {
  show: {
    method: 'GET',
    path: '/admin/v1/users/:id',
    id: 'showUser',
    summary: 'Shows one user',
    description:
      'The response has at most 100 active sessions: the newest logins, sorted from oldest to newest. Use the sessions endpoint for the full list.',
    ...readingOfUser,
    roles: ['read', 'support', 'billing'],
    responses: { 200: { description: 'The user with all related data.', body: details } },
  },
  create: {
    method: 'POST',
    path: '/admin/v1/users',
    id: 'createUser',
    summary: 'Creates a user',
    description:
      'Without a password or a password hash, the user must reset the password before the first login. The audit log records the call.',
    caller: 'operator',
    roles: [],
    body: record({
      email,
      password: Type.Optional(password),
      password_hash: Type.Optional(
        terms.text(
          'The password hash of another system, in an accepted format. Not together with `password`.',
        ),
      ),
      plan: Type.Optional(terms.plan),
      email_verified: Type.Optional(
        Type.Boolean({ description: '`true` marks the email as verified. Default: `false`.' }),
      ),
    }),
    responses: { 201: { description: 'The created user.', body: terms.user } },
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
    summary: 'Deletes a user and all data of the user',
    description: 'Another user can then register the email. The audit log records the call with the user ID.',
    ...changeOfUser,
    roles: [],
    responses: { 204: { description: 'The user is deleted.' } },
  },
  resetUsage: {
    method: 'POST',
    path: '/admin/v1/users/:id/reset-usage',
    id: 'resetUsage',
    summary: 'Resets a user’s daily uses and quotas',
    description:
      'Without a body, all uses are reset to 0. A quota that no plan has is refused. The audit log records the call.',
    ...changeOfUser,
    isBodyOptional: true,
    body: record({
      quota: Type.Optional(
        terms.text('The quota to reset. `free_daily` means the daily uses of plan `free`.'),
      ),
    }),
    roles: ['support'],
    responses: { 200: { description: 'The user after the change.', body: terms.user } },
  },
  sendReset: {
    method: 'POST',
    path: '/admin/v1/users/:id/send-reset',
    id: 'sendReset',
    summary: 'Sends a user a code to reset the password',
    description: 'The rate limits of mails do not apply. The audit log records the call.',
    caller: 'operator',
    roles: ['support'],
    params,
    responses: { 202: { description: 'The mail is queued.', body: terms.message } },
    refusals: mergeRefusals(bodilessRefusals, unknownUser, {
      409: ['user_inactive'],
      501: ['mail_not_configured'],
    }),
  },
  export: {
    method: 'GET',
    path: '/admin/v1/users/:id/export',
    id: 'exportUser',
    summary: 'Exports all data stored about a user',
    description:
      'The export contains the same data as the export that users can request themselves. The audit log records the call.',
    ...readingOfUser,
    roles: ['support'],
    responses: {
      200: {
        description: 'All stored data of the user, to be saved as a file.',
        headers: { 'content-disposition': 'Always `attachment`.' },
        body: accountExport,
      },
    },
  },
  setPassword: {
    method: 'POST',
    path: '/admin/v1/users/:id/password',
    id: 'setPassword',
    summary: 'Sets a user’s password and ends all sessions',
    description: 'The audit log records the call without the password.',
    caller: 'operator',
    roles: [],
    params,
    body: record({ password }),
    responses: { 204: { description: 'The password is set.' } },
    refusals: mergeRefusals(operatorRefusals, unknownUser, {
      400: ['request_invalid', 'password_too_short', 'password_too_long'],
      413: ['body_too_large'],
    }),
  },
  change: {
    method: 'PATCH',
    path: '/admin/v1/users/:id',
    id: 'changeUser',
    summary: 'Changes a user’s plan, email, email verification or active state',
    description:
      'The change applies from the user’s next request on. Fields that are absent do not change. A new email ends all sessions, and is not verified unless `email_verified` is `true`. The audit log records the call without the email.',
    caller: 'operator',
    roles: ['billing'],
    fieldsOf: { billing: ['plan'] },
    params,
    body: record({
      plan: Type.Optional(terms.plan),
      is_active: Type.Optional(
        Type.Unsafe<0 | 1 | boolean>({
          enum: [0, 1, false, true],
          description: '`0` or `false` blocks the user. `1` or `true` reactivates the user.',
        }),
      ),
      email_verified: Type.Optional(
        Type.Boolean({ description: '`true` marks the email as verified, `false` as not verified.' }),
      ),
      email: Type.Optional(email),
    }),
    responses: { 200: { description: 'The user after the change.', body: terms.user } },
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
    summary: 'Lists a user’s active sessions, oldest first',
    ...readingOfUser,
    roles: ['read', 'support'],
    responses: {
      200: { description: 'All active sessions.', body: record({ sessions: Type.Array(session) }) },
    },
  },
  endSessions: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/sessions',
    id: 'endSessions',
    summary: 'Ends all sessions of a user',
    description: 'Issued access tokens stay valid until they expire. The audit log records the call.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 200: { description: 'All sessions have ended.', body: terms.message } },
  },
  endSession: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/sessions/:session',
    id: 'endUserSession',
    summary: 'Ends one session of a user',
    description: 'The response is the same if the user has no such session. The audit log records the call.',
    ...changeOfUser,
    roles: ['support'],
    params: record({ id: terms.id('The user ID.'), session: terms.text('The session ID.') }),
    responses: { 204: { description: 'The session has ended.' } },
  },
  revokeApiToken: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/api-token',
    id: 'revokeUserApiToken',
    summary: 'Revokes the API key that a user created with `/api/v1/user/api-token`',
    description: 'The audit log records the call.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 204: { description: 'The API key is revoked, or there was none.' } },
  },
  revokeKey: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/keys/:key',
    id: 'revokeUserKey',
    summary: 'Revokes one API key of a user',
    description:
      'The response is the same if the user has no such key. The audit log records the call with the key ID.',
    ...changeOfUser,
    roles: ['support'],
    params: record({ id: terms.id('The user ID.'), key: terms.text('The key ID.') }),
    responses: { 204: { description: 'The API key is revoked.' } },
  },
  revokeKeys: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/keys',
    id: 'revokeUserKeys',
    summary: 'Revokes all API keys of a user',
    description: 'This includes the key of `/api/v1/user/api-token`. The audit log records the call.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 204: { description: 'The API keys are revoked, or there were none.' } },
  },
  removeIdentity: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/identities/:provider',
    id: 'removeUserIdentity',
    summary: 'Removes one identity of a user',
    description:
      'The identity may be the last way to sign in to the account. No session ends. The audit log records the call with the issuer.',
    ...changeOfUser,
    roles: ['support'],
    params: record({
      id: terms.id('The user ID.'),
      provider: terms.text('The name of the provider, or the percent-encoded issuer.'),
    }),
    responses: { 204: { description: 'The identity is removed.' } },
    refusals: mergeRefusals(changeOfUser.refusals, { 404: ['provider_unknown'] }),
  },
  removeWebhook: {
    method: 'DELETE',
    path: '/admin/v1/users/:id/webhook',
    id: 'removeUserWebhook',
    summary: 'Removes a user’s webhook and drops its pending deliveries',
    description: 'The audit log records the call.',
    ...changeOfUser,
    roles: ['support'],
    responses: { 204: { description: 'The webhook is removed, or there was none.' } },
  },
} as const satisfies Record<string, Operation>
