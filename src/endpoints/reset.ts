// The endpoints for a forgotten password.
import type { PasswordReset } from '../accounts/codes/account-codes.ts'
import { normalizeEmail } from '../accounts/email.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import { message, openRecord, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import { authPrefix, codeRefusals, openRefusals } from './auth.ts'
import { type PublicEndpoint, publicEndpoint } from './local-endpoint.ts'
import type { RedeemSubmitted } from './submitted-code.ts'

export const resetOperations = {
  forgot: {
    method: 'POST',
    path: `${authPrefix}/password/forgot`,
    id: 'forgotPassword',
    summary: 'Sends a code to reset a forgotten password',
    caller: 'anybody',
    body: openRecord({ email: text('The email of the account.') }),
    responses: {
      202: {
        description: 'The mail is sent if the account exists. The response is the same if it does not.',
        body: message,
      },
    },
    refusals: mergeRefusals(openRefusals, {
      400: ['email_invalid'],
      501: ['mail_not_configured'],
      503: ['service_unavailable'],
    }),
  },
  reset: {
    method: 'POST',
    path: `${authPrefix}/password/reset`,
    id: 'resetPassword',
    summary: 'Sets a new password with the code or token from the mail',
    caller: 'anybody',
    endsSessions: true,
    body: openRecord({
      email: Type.Optional(text('The email of the account. Required with `code`.')),
      code: Type.Optional(text('The 8 digits from the mail.')),
      token: Type.Optional(text('The token from the link in the mail. It replaces `email` and `code`.')),
      new_password: text('The new password, 8 to 1,024 characters.'),
    }),
    responses: {
      200: {
        description: 'The password is set. All sessions have ended, and the email is verified.',
        body: message,
      },
    },
    refusals: mergeRefusals(openRefusals, codeRefusals, {
      400: ['password_too_short', 'password_too_long', 'password_too_common'],
    }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  /** Undefined if the gateway cannot send mails. Every code is then refused as invalid. */
  passwordReset: PasswordReset | undefined
  redeemSubmitted: RedeemSubmitted
}

export function createResetEndpoints({ passwordReset, redeemSubmitted }: Dependencies): PublicEndpoint[] {
  return [
    // The response has no `userId` for the access log. Otherwise, the log would show that the account exists.
    publicEndpoint(resetOperations.forgot, async ({ body, client }) => {
      if (passwordReset === undefined) throw new Refusal('mail_not_configured')
      return {
        status: 202,
        body: await passwordReset.forgot(normalizeEmail(body.string('email')), client),
      }
    }),
    publicEndpoint(resetOperations.reset, async request => {
      if (passwordReset === undefined) throw new Refusal('code_invalid')
      const { body } = request
      const newPassword = body.string('new_password')
      const email = normalizeEmail(body.string('email'))
      passwordReset.validateNewPassword(newPassword, email)
      const userId = await redeemSubmitted(request, { owner: { email }, email }, submitted =>
        passwordReset.reset(submitted, newPassword),
      )
      return { status: 200, body: { message: messages.passwordChanged }, userId }
    }),
  ]
}
