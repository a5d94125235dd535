// The endpoints for a forgotten password (CONTRACT §12, "Password").

import type { PasswordReset } from '../accounts/codes/account-codes.ts'
import { normalizeEmail } from '../accounts/email.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { PublicEndpoint } from './local-endpoint.ts'
import { resetOperations } from './reset.openapi.ts'
import type { RedeemSubmitted } from './submitted-code.ts'

interface Dependencies {
  /** Undefined where no mails can be sent: then no code is right. */
  passwordReset: PasswordReset | undefined
  redeemSubmitted: RedeemSubmitted
}

export function createResetEndpoints({ passwordReset, redeemSubmitted }: Dependencies): PublicEndpoint[] {
  return [
    {
      kind: 'public',
      operation: resetOperations.forgot,
      // Its log line names no user: it would tell whether there is one.
      async answer({ body, client }) {
        if (passwordReset === undefined) throw new Refusal('mail_not_configured')
        return {
          status: 202,
          body: await passwordReset.forgot(normalizeEmail(body.string('email')), client),
        }
      },
    },
    {
      kind: 'public',
      operation: resetOperations.reset,
      async answer(request) {
        if (passwordReset === undefined) throw new Refusal('code_invalid')
        const { body } = request
        const newPassword = body.string('new_password')
        const email = normalizeEmail(body.string('email'))
        passwordReset.validateNewPassword(newPassword, email)
        const userId = await redeemSubmitted(request, { owner: { email }, email }, submitted =>
          passwordReset.reset(submitted, newPassword),
        )
        return { status: 200, body: { message: messages.passwordChanged }, userId }
      },
    },
  ]
}
