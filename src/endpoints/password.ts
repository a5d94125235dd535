// The change of one's own password (CONTRACT §12, "Password").
import type { PasswordChange } from '../accounts/password-change.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'
import type { GuardedEndpoint } from './local-endpoint.ts'
import { passwordOperations } from './password.openapi.ts'
import type { SignedInEndpoint } from './signed-in.ts'

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
