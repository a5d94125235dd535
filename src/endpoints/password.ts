// The change of one's own password (CONTRACT §12, "Password").

import type { PasswordChange } from '../accounts/password-change.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import { openRecord, text } from '../openapi/schema-builders.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import { authPrefix, tokenPair } from './auth.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'
import type { GuardedEndpoint } from './local-endpoint.ts'
import { type SignedInEndpoint, signedInRefusals } from './signed-in.ts'

export const passwordOperations = {
  change: {
    method: 'POST',
    path: `${authPrefix}/password`,
    id: 'changeOwnPassword',
    summary: 'Changes one’s password',
    description: 'Ends every session, the current one too, and opens a new one.',
    caller: 'user',
    endsSessions: true,
    body: openRecord({
      current_password: text('The account’s.'),
      new_password: text('8 to 1,024 characters.'),
    }),
    responses: { 200: { description: 'The new session’s first tokens.', body: tokenPair } },
    refusals: mergeRefusals(signedInRefusals, {
      400: ['password_too_short', 'password_too_long', 'password_too_common', 'password_unchanged'],
      401: ['credentials_invalid'],
    }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  passwordChange: PasswordChange
  validateNewPassword: ValidateNewPassword
  limiters: Pick<RateLimiters, 'login' | 'login_address'>
  failedLogins: FailedLoginLimiter
  signedIn: SignedInEndpoint
}

export function createPasswordEndpoints({
  passwordChange,
  validateNewPassword,
  limiters,
  failedLogins,
  signedIn,
}: Dependencies): GuardedEndpoint[] {
  return [
    signedIn(passwordOperations.change, async ({ user, body, client, userAgent }) => {
      const next = body.string('new_password')
      validateNewPassword(next, user.email)
      const { userId, ...pair } = await failedLogins.attempt(guessLimits(limiters, client, user.email), () =>
        passwordChange.change(user, { current: body.string('current_password'), next, userAgent }),
      )
      return { status: 200, body: pair, userId }
    }),
  ]
}
