// The endpoint that changes the user's own password.
import type { OwnAccount } from '../accounts/own-account.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import { openRecord, text } from '../openapi/schema-builders.ts'
import { authPrefix, tokenPair } from './auth.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'
import { type GuardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { SignedInEndpoint } from './signed-in.ts'

export const passwordOperations = {
  change: {
    method: 'POST',
    path: `${authPrefix}/password`,
    id: 'changeOwnPassword',
    summary: 'Changes the current user’s password',
    description: 'Ends all sessions, including the current session, and starts a new session.',
    caller: 'user',
    endsSessions: true,
    body: openRecord({
      current_password: text('The current password of the account.'),
      new_password: text('The new password, 8 to 1,024 characters.'),
    }),
    responses: { 200: { description: 'The first tokens of the new session.', body: tokenPair } },
    refusals: mergeRefusals(guardRefusals, {
      400: ['password_too_short', 'password_too_long', 'password_too_common', 'password_unchanged'],
      401: ['credentials_invalid'],
      409: ['password_not_set'],
    }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  ownAccount: Pick<OwnAccount, 'changePassword'>
  validateNewPassword: ValidateNewPassword
  attemptGuess: AttemptGuess
  signedIn: SignedInEndpoint
}

export function createPasswordEndpoints({
  ownAccount,
  validateNewPassword,
  attemptGuess,
  signedIn,
}: Dependencies): GuardedEndpoint[] {
  return [
    signedIn(passwordOperations.change, async ({ user, body, client, userAgent }) => {
      const next = body.string('new_password')
      validateNewPassword(next, user.email)
      const { userId, ...pair } = await attemptGuess(client, user.email, () =>
        ownAccount.changePassword(user, { current: body.string('current_password'), next, userAgent }),
      )
      return { status: 200, body: pair, userId }
    }),
  ]
}
