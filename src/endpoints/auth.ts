// The endpoints for registration, login, token refresh and logout, with their rate limits.
import type { Accounts } from '../accounts/accounts.ts'
import { normalizeEmail } from '../accounts/email.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import { id, message, oneOf, openRecord, plan, record, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { rateLimited } from '../refusals/limits.ts'
import { Type } from '../schema/type.ts'
import { limitNames, type RateLimiter, type RateLimiters } from '../storage/rate-limiter.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'
import { type PublicEndpoint, publicEndpoint } from './local-endpoint.ts'

export const authPrefix = '/api/v1/auth'

const credentials = openRecord({
  email: text('The email of the account.'),
  password: text('The password of the account.'),
})

export const tokenPair = record(
  {
    access_token: text('A JWT for `Authorization: Bearer`. It is valid for 15 minutes by default.'),
    refresh_token: text(
      'A JWT that can be used once, to get new tokens. It is valid for 30 days by default.',
    ),
    token_type: oneOf(['Bearer'], 'Always `Bearer`.'),
    plan: plan,
  },
  { title: 'TokenPair', description: 'The tokens of a session.' },
)

/**
 * The refusals of endpoints that need no authentication. Even these endpoints refuse a request with two `Authorization`
 * headers or two `X-API-Key` headers.
 */
export const openRefusals: Refusals = { 400: ['credentials_ambiguous'], 413: ['body_too_large'] }
/** The refusals of endpoints that accept a code from a mail. These endpoints count a wrong code as a failed login. */
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
    description:
      'The email is stored without surrounding white space and in lower case. The password must have 8 to 1,024 characters.',
    caller: 'anybody',
    body: credentials,
    responses: {
      201: {
        description: 'The account is created.',
        body: record({ message: text('A sentence.'), user_id: id('The ID of the new user.') }),
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
    summary: 'Logs a user in and starts a session',
    caller: 'anybody',
    body: credentials,
    responses: { 200: { description: 'The first tokens of the session.', body: tokenPair } },
    refusals: mergeRefusals(openRefusals, limited, {
      400: ['credentials_missing'],
      401: ['credentials_invalid'],
    }),
  },
  refresh: {
    method: 'POST',
    path: `${authPrefix}/refresh`,
    id: 'refresh',
    summary: 'Exchanges a refresh token for new tokens',
    caller: 'anybody',
    body: openRecord({ refresh_token: text('The latest refresh token of the session.') }),
    responses: {
      200: { description: 'New tokens. The sent refresh token cannot be used again.', body: tokenPair },
    },
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
    description: 'The access token stays valid until it expires.',
    caller: 'anybody',
    body: openRecord({ refresh_token: Type.Optional(text('A refresh token of the session.')) }),
    responses: {
      200: {
        description: 'The session has ended. The response is the same if the session did not exist.',
        body: message,
      },
    },
    refusals: openRefusals,
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  accounts: Accounts
  sessions: Pick<Sessions, 'refresh' | 'logout'>
  limiters: Pick<RateLimiters, 'register' | 'refresh'>
  attemptGuess: AttemptGuess
  /** Sends the verification mail, if configured. Errors are logged and not thrown, because the account now exists. */
  onRegistered(user: { id: number; email: string }, client: string): Promise<void>
}

export function createAuthEndpoints({
  accounts,
  sessions,
  limiters,
  attemptGuess,
  onRegistered,
}: Dependencies): PublicEndpoint[] {
  return [
    publicEndpoint(authOperations.register, async ({ body, client }) => {
      await enforceLimit('register', limiters.register, client)
      const submitted = { email: body.string('email'), password: body.string('password') }
      const created = await accounts.register(submitted)
      await onRegistered({ id: created.user_id, email: normalizeEmail(submitted.email) }, client)
      return { status: 201, body: created, userId: created.user_id }
    }),
    publicEndpoint(authOperations.login, async ({ body, client, userAgent }) => {
      const submitted = { email: body.string('email'), password: body.string('password') }
      const { userId, ...pair } = await attemptGuess(client, normalizeEmail(submitted.email), () =>
        accounts.login(submitted, userAgent),
      )
      return { status: 200, body: pair, userId }
    }),
    publicEndpoint(authOperations.refresh, async ({ body, client }) => {
      await enforceLimit('refresh', limiters.refresh, client)
      const { userId, ...pair } = await sessions.refresh(body.string('refresh_token'))
      return { status: 200, body: pair, userId }
    }),
    publicEndpoint(authOperations.logout, async ({ body }) => {
      const userId = await sessions.logout(body.string('refresh_token'))
      return { status: 200, body: { message: messages.loggedOut }, userId }
    }),
  ]
}

async function enforceLimit(name: 'register' | 'refresh', limiter: RateLimiter, key: string): Promise<void> {
  const result = await limiter.consume(key)
  if (!result.allowed) throw rateLimited(limitNames[name], result)
}
