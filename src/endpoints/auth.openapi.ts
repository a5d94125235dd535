// Requests and responses of the four endpoints under /api/v1/auth (spec §4).

import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'

const { record, text } = terms

export const authPrefix = '/api/v1/auth'

/** Ignores unknown members. */
const open = { additionalProperties: true }

const credentials = record({ email: text('An email.'), password: text('A password.') }, open)

export const tokenPair = record(
  {
    access_token: text('A JWT for `Authorization: Bearer`; good for 15 minutes unless configured otherwise.'),
    refresh_token: text('A JWT that is exchanged once; good for 30 days unless configured otherwise.'),
    token_type: terms.oneOf(['Bearer'], 'Always `Bearer`.'),
    plan: terms.plan,
  },
  { title: 'TokenPair', description: 'What a session is held with.' },
)

/** Each reads its body first and authenticates no caller; but two credentials are refused on every path. */
export const openRefusals: Refusals = { 400: ['credentials_ambiguous'], 413: ['body_too_large'] }
/** Of endpoints that take a mail’s code: wrong ones count as failed logins. */
export const codeRefusals: Refusals = {
  400: ['code_invalid'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}
const limited: Refusals = { 429: ['rate_limited'], 503: ['service_unavailable'] }

export const authOperations = {
  register: {
    method: 'POST',
    path: `${authPrefix}/register`,
    id: 'register',
    summary: 'Creates an account on plan free',
    description: 'The email is stripped and lower-cased; the password has 8 to 1,024 characters.',
    caller: 'anybody',
    body: credentials,
    responses: {
      201: {
        description: 'Created.',
        body: record({ message: text('A French sentence.'), user_id: terms.id('The new user’s id.') }),
      },
    },
    refusals: mergeRefusals(openRefusals, limited, {
      400: ['email_invalid', 'password_too_short', 'password_too_long', 'password_too_common'],
      409: ['email_taken'],
      500: ['internal'],
    }),
  },
  login: {
    method: 'POST',
    path: `${authPrefix}/login`,
    id: 'login',
    summary: 'Opens a session',
    caller: 'anybody',
    body: credentials,
    responses: { 200: { description: 'The session’s first tokens.', body: tokenPair } },
    refusals: mergeRefusals(openRefusals, limited, {
      400: ['credentials_missing'],
      401: ['credentials_invalid'],
    }),
  },
  refresh: {
    method: 'POST',
    path: `${authPrefix}/refresh`,
    id: 'refresh',
    summary: 'Exchanges a refresh token for new tokens, once',
    caller: 'anybody',
    body: record({ refresh_token: text('The one that was given last.') }, open),
    responses: { 200: { description: 'New tokens; the one that was sent is spent.', body: tokenPair } },
    refusals: mergeRefusals(openRefusals, limited, {
      400: ['refresh_token_missing'],
      401: ['refresh_token_invalid', 'refresh_token_inactive', 'user_not_found'],
    }),
  },
  logout: {
    method: 'POST',
    path: `${authPrefix}/logout`,
    id: 'logout',
    summary: 'Ends a session',
    description: 'The access token stays good until it expires.',
    caller: 'anybody',
    body: record({ refresh_token: Type.Optional(text('The session’s.')) }, open),
    responses: {
      200: { description: 'Always, whether or not there was such a session.', body: terms.message },
    },
    refusals: openRefusals,
  },
} as const satisfies Record<string, Operation>
