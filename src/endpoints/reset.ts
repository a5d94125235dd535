// The endpoints for a forgotten password (CONTRACT §12, "Password").
import { normalizeEmail } from '../accounts/email.ts'
import type { PasswordReset } from '../accounts/password-reset.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { OpenEndpoint } from './endpoint.ts'
import type { UsePresented } from './presented-code.ts'
import { resetOperations } from './reset.openapi.ts'

interface Dependencies {
  /** Undefined where no mails can be sent: then no code is right. */
  passwordReset: PasswordReset | undefined
  usePresented: UsePresented
}

export function createResetEndpoints({ passwordReset, usePresented }: Dependencies): OpenEndpoint[] {
  return [
    {
      kind: 'open',
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
      kind: 'open',
      operation: resetOperations.reset,
      async answer(request) {
        if (passwordReset === undefined) throw new Refusal('code_invalid')
        const { body } = request
        const newPassword = body.string('new_password')
        const email = normalizeEmail(body.string('email'))
        passwordReset.validateNewPassword(newPassword, email)
        const userId = await usePresented(request, { owner: { email }, email }, presented =>
          passwordReset.reset(presented, newPassword),
        )
        return { status: 200, body: { message: messages.passwordChanged }, userId }
      },
    },
  ]
}
