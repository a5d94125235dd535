// The endpoints that verify or change one's email (CONTRACT §12, "Email").
import type { CurrentPassword } from '../accounts/current-password.ts'
import { isStorableEmail, normalizeEmail } from '../accounts/email.ts'
import type { EmailChange } from '../accounts/email-change.ts'
import type { EmailVerification } from '../accounts/email-verification.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import { emailOperations } from './email.openapi.ts'
import type { Endpoint, EndpointResponse, OpenEndpoint } from './endpoint.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'
import { tokenOf, type UsePresented } from './presented-code.ts'
import type { RequireSignedIn, SignedInEndpoint } from './signed-in.ts'

interface Dependencies {
  /** Undefined where no mails can be sent: then no code is right. */
  mailed: { readonly verification: EmailVerification; readonly change: EmailChange } | undefined
  currentPassword: CurrentPassword
  usePresented: UsePresented
  limiters: Pick<RateLimiters, 'login' | 'login_address'>
  failedLogins: FailedLoginLimiter
  requireSignedIn: RequireSignedIn
  signedIn: SignedInEndpoint
}

export function createEmailEndpoints(dependencies: Dependencies): Endpoint[] {
  const { mailed, currentPassword, usePresented, limiters, failedLogins, signedIn } = dependencies
  return [
    signedIn(emailOperations.requestVerification, async ({ user, client }) => {
      if (mailed === undefined) throw new Refusal('mail_not_configured')
      if (user.email_verified_at !== null)
        return { status: 200, body: { message: messages.emailVerifiedBefore } }
      await mailed.verification.request(user, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    {
      kind: 'open',
      operation: emailOperations.verify,
      async answer(request) {
        if (mailed === undefined) throw new Refusal('code_invalid')
        const email = normalizeEmail(request.body.string('email'))
        const userId = await usePresented(request, { owner: { email }, email }, mailed.verification.verify)
        return { status: 200, body: { message: messages.emailVerified }, userId }
      },
    },
    signedIn(emailOperations.requestChange, async ({ user, body, client }) => {
      if (mailed === undefined) throw new Refusal('mail_not_configured')
      const newEmail = normalizeEmail(body.string('email'))
      if (!isStorableEmail(newEmail) || !isMailbox(newEmail)) throw new Refusal('email_invalid')
      const { sessionEpoch } = await failedLogins.attempt(guessLimits(limiters, client, user.email), () =>
        currentPassword.verify(user, body.string('current_password')),
      )
      await mailed.change.request({ ...user, sessionEpoch }, newEmail, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    confirmEndpoint(dependencies),
  ]
}

function confirmEndpoint({ mailed, usePresented, requireSignedIn }: Dependencies): OpenEndpoint {
  const confirmed = ({ id: userId, email }: { id: number; email: string }): EndpointResponse => ({
    status: 200,
    body: { message: messages.emailChanged, email },
    userId,
  })
  return {
    kind: 'open',
    operation: emailOperations.confirmChange,
    // A token stands for itself: whoever has it opened the mail, and credentials beside it are not read.
    async answer(request, authenticate) {
      const token = tokenOf(request.body)
      if (token !== '') {
        if (mailed === undefined) throw new Refusal('code_invalid')
        return confirmed(await mailed.change.confirm({ token }, 'none'))
      }
      const authenticated = await authenticate()
      await requireSignedIn(authenticated)
      if (mailed === undefined) throw new Refusal('code_invalid')
      const { user, sessionId } = authenticated
      const claim = { owner: { userId: user.id }, email: user.email }
      const current = sessionId === undefined ? 'none' : { id: sessionId }
      return confirmed(
        await usePresented(request, claim, presented => mailed.change.confirm(presented, current)),
      )
    },
  }
}
