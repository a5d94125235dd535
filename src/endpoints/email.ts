// The endpoints that verify or change one's email (CONTRACT §12, "Email").
import type { AccountCodes } from '../accounts/codes/account-codes.ts'
import type { CurrentPassword } from '../accounts/current-password.ts'
import { isStorableEmail, normalizeEmail } from '../accounts/email.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import { emailOperations } from './email.openapi.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'
import type { EndpointResponse, LocalEndpoint, PublicEndpoint } from './local-endpoint.ts'
import type { RequireSignedIn, SignedInEndpoint } from './signed-in.ts'
import { type RedeemSubmitted, tokenOf } from './submitted-code.ts'

interface Dependencies {
  /** Undefined where no mails can be sent: then no code is right. */
  codes: Pick<AccountCodes, 'verification' | 'emailChange'> | undefined
  currentPassword: CurrentPassword
  redeemSubmitted: RedeemSubmitted
  limiters: Pick<RateLimiters, 'login' | 'login_address'>
  failedLogins: FailedLoginLimiter
  requireSignedIn: RequireSignedIn
  signedIn: SignedInEndpoint
}

export function createEmailEndpoints(dependencies: Dependencies): LocalEndpoint[] {
  const { codes, currentPassword, redeemSubmitted, limiters, failedLogins, signedIn } = dependencies
  return [
    signedIn(emailOperations.requestVerification, async ({ user, client }) => {
      if (codes === undefined) throw new Refusal('mail_not_configured')
      if (user.email_verified_at !== null)
        return { status: 200, body: { message: messages.emailVerifiedBefore } }
      await codes.verification.request(user, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    {
      kind: 'public',
      operation: emailOperations.verify,
      async answer(request) {
        if (codes === undefined) throw new Refusal('code_invalid')
        const email = normalizeEmail(request.body.string('email'))
        const userId = await redeemSubmitted(request, { owner: { email }, email }, codes.verification.verify)
        return { status: 200, body: { message: messages.emailVerified }, userId }
      },
    },
    signedIn(emailOperations.requestChange, async ({ user, body, client }) => {
      if (codes === undefined) throw new Refusal('mail_not_configured')
      const newEmail = normalizeEmail(body.string('email'))
      if (!isStorableEmail(newEmail) || !isMailbox(newEmail)) throw new Refusal('email_invalid')
      const { sessionEpoch } = await failedLogins.attempt(guessLimits(limiters, client, user.email), () =>
        currentPassword.verify(user, body.string('current_password')),
      )
      await codes.emailChange.request({ ...user, sessionEpoch }, newEmail, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    confirmEndpoint(dependencies),
  ]
}

function confirmEndpoint({ codes, redeemSubmitted, requireSignedIn }: Dependencies): PublicEndpoint {
  const confirmed = ({ id: userId, email }: { id: number; email: string }): EndpointResponse => ({
    status: 200,
    body: { message: messages.emailChanged, email },
    userId,
  })
  return {
    kind: 'public',
    operation: emailOperations.confirmChange,
    // A token stands for itself: whoever has it opened the mail, and credentials beside it are not read.
    async answer(request, authenticate) {
      const token = tokenOf(request.body)
      if (token !== '') {
        if (codes === undefined) throw new Refusal('code_invalid')
        return confirmed(await codes.emailChange.confirm({ token }, 'none'))
      }
      const authenticated = await authenticate()
      await requireSignedIn(authenticated)
      if (codes === undefined) throw new Refusal('code_invalid')
      const { user, sessionId } = authenticated
      const claim = { owner: { userId: user.id }, email: user.email }
      const current = sessionId === undefined ? 'none' : { id: sessionId }
      return confirmed(
        await redeemSubmitted(request, claim, submitted => codes.emailChange.confirm(submitted, current)),
      )
    },
  }
}
