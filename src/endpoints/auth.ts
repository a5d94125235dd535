// The four endpoints under /api/v1/auth (spec §4): their rate limits, and the body members passed to the accounts.
import type { Accounts } from '../accounts/accounts.ts'
import { normalizeEmail } from '../accounts/email.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { messages } from '../refusals/catalog.ts'
import { rateLimited } from '../refusals/limits.ts'
import { limitNames, type RateLimiter, type RateLimiters } from '../storage/rate-limiter.ts'
import { authOperations } from './auth.openapi.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'
import type { PublicEndpoint } from './local-endpoint.ts'

interface Dependencies {
  accounts: Accounts
  sessions: Pick<Sessions, 'refresh' | 'logout'>
  limiters: Pick<RateLimiters, 'register' | 'login' | 'login_address' | 'refresh'>
  failedLogins: FailedLoginLimiter
  /** Sends the verification if that is configured; never fails, because the account exists by then. */
  onRegistered(user: { id: number; email: string }, client: string): Promise<void>
}

export function createAuthEndpoints({
  accounts,
  sessions,
  limiters,
  failedLogins,
  onRegistered,
}: Dependencies): PublicEndpoint[] {
  return [
    {
      kind: 'public',
      operation: authOperations.register,
      async answer({ body, client }) {
        await enforceLimit('register', limiters.register, client)
        const created = await accounts.register({
          email: body.string('email'),
          password: body.string('password'),
        })
        await onRegistered({ id: created.user_id, email: normalizeEmail(body.string('email')) }, client)
        return { status: 201, body: created, userId: created.user_id }
      },
    },
    {
      kind: 'public',
      operation: authOperations.login,
      async answer({ body, client, userAgent }) {
        const submitted = { email: body.string('email'), password: body.string('password') }
        const { userId, ...pair } = await failedLogins.attempt(
          guessLimits(limiters, client, normalizeEmail(submitted.email)),
          () => accounts.login(submitted, userAgent),
        )
        return { status: 200, body: pair, userId }
      },
    },
    {
      kind: 'public',
      operation: authOperations.refresh,
      async answer({ body, client }) {
        await enforceLimit('refresh', limiters.refresh, client)
        const { userId, ...pair } = await sessions.refresh(body.string('refresh_token'))
        return { status: 200, body: pair, userId }
      },
    },
    {
      kind: 'public',
      operation: authOperations.logout,
      async answer({ body }) {
        const userId = await sessions.logout(body.string('refresh_token'))
        return { status: 200, body: { message: messages.loggedOut }, userId }
      },
    },
  ]
}

async function enforceLimit(name: 'register' | 'refresh', limiter: RateLimiter, key: string): Promise<void> {
  const result = await limiter.consume(key)
  if (!result.allowed) throw rateLimited(limitNames[name], result)
}
