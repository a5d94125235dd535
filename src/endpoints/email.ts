// The endpoints that verify or change the user's email.
import type { AccountCodes } from '../accounts/codes/account-codes.ts'
import { isStorableEmail, normalizeEmail } from '../accounts/email.ts'
import type { OwnAccount } from '../accounts/own-account.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import { message, openRecord, record, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import { authPrefix, codeRefusals, openRefusals } from './auth.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'
import {
  type EndpointResponse,
  guardRefusals,
  type LocalEndpoint,
  type PublicEndpoint,
  publicEndpoint,
} from './local-endpoint.ts'
import type { RequireLiveCredential, SignedInEndpoint } from './signed-in.ts'
import { type RedeemSubmitted, tokenOf } from './submitted-code.ts'

const codeOrToken = {
  code: Type.Optional(text('The 8 digits from the mail.')),
  token: Type.Optional(
    text('The token from the link in the mail. With a token, the body needs no other member.'),
  ),
}

export const emailOperations = {
  requestVerification: {
    method: 'POST',
    path: `${authPrefix}/email/verify/request`,
    id: 'requestEmailVerification',
    summary: 'Sends a code to verify the current user’s email',
    caller: 'user',
    responses: {
      200: { description: 'The email is already verified. No mail is sent.', body: message },
      202: { description: 'The mail is sent, unless a rate limit is reached.', body: message },
    },
    refusals: mergeRefusals(guardRefusals, { 501: ['mail_not_configured'] }),
  },
  verify: {
    method: 'POST',
    path: `${authPrefix}/email/verify`,
    id: 'verifyEmail',
    summary: 'Verifies an email with the code or token from a mail',
    caller: 'anybody',
    body: openRecord({
      email: Type.Optional(text('The email of the account. Required with `code`.')),
      ...codeOrToken,
    }),
    responses: { 200: { description: 'The email is verified.', body: message } },
    refusals: mergeRefusals(openRefusals, codeRefusals),
  },
  requestChange: {
    method: 'POST',
    path: `${authPrefix}/email`,
    id: 'requestEmailChange',
    summary: 'Sends a confirmation code to the new email address',
    caller: 'user',
    body: openRecord({
      email: text('The new email.'),
      current_password: text('The current password of the account.'),
    }),
    responses: {
      202: {
        description: 'The mail is sent, unless a rate limit is reached or another account has the email.',
        body: message,
      },
    },
    refusals: mergeRefusals(guardRefusals, {
      400: ['email_invalid'],
      401: ['credentials_invalid'],
      409: ['password_not_set'],
      501: ['mail_not_configured'],
    }),
  },
  confirmChange: {
    method: 'POST',
    path: `${authPrefix}/email/confirm`,
    id: 'confirmEmailChange',
    summary: 'Changes the email with the code or token from the mail',
    caller: 'user',
    endsSessions: true,
    body: openRecord(codeOrToken),
    responses: {
      200: {
        description:
          'The email is changed. With a code, all other sessions end. With a token, all sessions end. If the new email is the current one, it is only verified, and no session ends.',
        body: record({ message: text('A sentence.'), email: text('The new email.') }),
      },
    },
    refusals: mergeRefusals(guardRefusals, codeRefusals, { 409: ['email_taken'] }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  /** Undefined if the gateway cannot send mails. Every code is then refused as invalid. */
  codes: Pick<AccountCodes, 'verification' | 'emailChange'> | undefined
  ownAccount: Pick<OwnAccount, 'checkPassword'>
  redeemSubmitted: RedeemSubmitted
  attemptGuess: AttemptGuess
  requireLiveCredential: RequireLiveCredential
  signedIn: SignedInEndpoint
}

export function createEmailEndpoints(dependencies: Dependencies): LocalEndpoint[] {
  const { codes, ownAccount, redeemSubmitted, attemptGuess, signedIn } = dependencies
  return [
    signedIn(emailOperations.requestVerification, async ({ user, client }) => {
      if (codes === undefined) throw new Refusal('mail_not_configured')
      if (user.email_verified_at !== null)
        return { status: 200, body: { message: messages.emailVerifiedBefore } }
      await codes.verification.request(user, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    publicEndpoint(emailOperations.verify, async request => {
      if (codes === undefined) throw new Refusal('code_invalid')
      const email = normalizeEmail(request.body.string('email'))
      const userId = await redeemSubmitted(request, { owner: { email }, email }, codes.verification.verify)
      return { status: 200, body: { message: messages.emailVerified }, userId }
    }),
    signedIn(emailOperations.requestChange, async ({ user, body, client }) => {
      if (codes === undefined) throw new Refusal('mail_not_configured')
      const newEmail = normalizeEmail(body.string('email'))
      if (!isStorableEmail(newEmail) || !isMailbox(newEmail)) throw new Refusal('email_invalid')
      const { sessionEpoch } = await attemptGuess(client, user.email, () =>
        ownAccount.checkPassword(user, body.string('current_password')),
      )
      await codes.emailChange.request({ ...user, sessionEpoch }, newEmail, client)
      return { status: 202, body: { message: messages.mailSent } }
    }),
    confirmEndpoint(dependencies),
  ]
}

function confirmEndpoint({ codes, redeemSubmitted, requireLiveCredential }: Dependencies): PublicEndpoint {
  const confirmed = ({ id: userId, email }: { id: number; email: string }): EndpointResponse => ({
    status: 200,
    body: { message: messages.emailChanged, email },
    userId,
  })
  // A token proves that the client has read the mail. So if the body contains a token, the access token of the request
  // is not checked.
  return publicEndpoint(emailOperations.confirmChange, async (request, authenticate) => {
    const token = tokenOf(request.body)
    if (token !== '') {
      if (codes === undefined) throw new Refusal('code_invalid')
      return confirmed(await codes.emailChange.confirm({ token }, 'none'))
    }
    const authenticated = await authenticate()
    await requireLiveCredential(authenticated)
    if (codes === undefined) throw new Refusal('code_invalid')
    const { user, sessionId } = authenticated
    const claim = { owner: { userId: user.id }, email: user.email }
    const current = sessionId === undefined ? 'none' : { id: sessionId }
    return confirmed(
      await redeemSubmitted(request, claim, submitted => codes.emailChange.confirm(submitted, current)),
    )
  })
}
