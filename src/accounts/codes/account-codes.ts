// Implements the operations that need a code from a mail: reset a password, verify an email, and change an email.
import { roundUpDuration } from '../../async/round-up-duration.ts'
import type { Clock } from '../../clock.ts'
import { isMailbox } from '../../config/formats/mailbox.ts'
import type { CodeKind } from '../../mail/mail-kind.ts'
import type { MailQueue } from '../../mail/mail-queue.ts'
import { type Bilingual, messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { RateLimiter } from '../../storage/rate-limiter.ts'
import type { User } from '../../users/user.ts'
import { isStorableEmail } from '../email.ts'
import type { Passwords } from '../password.ts'
import type { ValidateNewPassword } from '../password-rules.ts'
import type { CodeIssueStore, EmailChangeRequest } from './code-issue-store.ts'
import type { CodeRedemptionStore, CurrentSession } from './code-redemption-store.ts'
import type { RedeemCode, SubmittedCode } from './redeem-code.ts'

/**
 * Every method throws StorageError when a store fails. The argument `client` is the rate-limit key of the client. If a
 * request exceeds a rate limit, no mail is sent. The client still gets the usual response.
 */
export interface AccountCodes {
  readonly passwordReset: PasswordReset
  readonly verification: EmailVerification
  readonly emailChange: EmailChange
}

export interface PasswordReset {
  /**
   * Sends a code to the email if an account has this email. Neither the result nor the duration of the call shows
   * whether there is such an account.
   * @param email the normalized email
   * @throws Refusal `email_invalid`
   */
  forgot(email: string, client: string): Promise<{ message: Bilingual }>
  /**
   * Checks the form of the new password. Call it before a code is tried.
   * @param email the normalized email that the client submitted; empty if the client submitted only a token
   * @throws Refusal `password_too_short`, `password_too_long`, `password_too_common`
   */
  validateNewPassword: ValidateNewPassword
  /**
   * Sets the new password if the code is correct. The password is hashed only after the code was checked.
   * @returns the user's id
   * @throws Refusal `code_invalid`; `service_unavailable` if the hashing queue is full; `password_too_common` if the
   *   password is the email of the account. The code stays valid after `service_unavailable` and `password_too_common`.
   */
  reset(submitted: SubmittedCode, newPassword: string): Promise<number>
}

export interface EmailVerification {
  request(user: Pick<User, 'id' | 'email'>, client: string): Promise<void>
  /** @returns the user's id @throws Refusal `code_invalid` */
  verify(submitted: SubmittedCode): Promise<number>
}

export interface EmailChange {
  /**
   * Sends a code to the new email and a notice to the current email. If another account has the new email, no code is
   * sent, but the call takes the same time.
   * @param user the user who entered the correct password, with the session epoch at the time of the password check
   * @param newEmail the normalized new email; it must be exactly one mailbox
   */
  request(user: EmailChangeRequest['user'], newEmail: string, client: string): Promise<void>
  /** Changes the email and marks it as verified. @throws Refusal `code_invalid`, `email_taken` */
  confirm(submitted: SubmittedCode, current: CurrentSession): Promise<User>
}

interface Dependencies {
  issues: Pick<CodeIssueStore, 'issueReset' | 'issueVerification' | 'issueEmailChange'>
  redemptions: Pick<CodeRedemptionStore, 'resetPassword' | 'verifyEmail' | 'changeEmail'>
  redeemCode: RedeemCode
  passwords: Pick<Passwords, 'hash'>
  validateNewPassword: ValidateNewPassword
  /** `mail.rate_limits`. */
  limiters: Record<'perEmail' | 'perAddress', Pick<RateLimiter, 'consume'>>
  mails: Pick<MailQueue, 'wake'>
  clock: Clock
  /** `mail.code_ttl`. */
  ttlMs: Record<CodeKind, number>
  /** `mail.notices`. */
  notices: boolean
  /** Resolves when a change is visible in every process. */
  changesVisible(): Promise<void>
}

export function createAccountCodes(dependencies: Dependencies): AccountCodes {
  const { issues, redemptions, redeemCode, passwords, validateNewPassword } = dependencies
  const { limiters, mails, clock, ttlMs, notices, changesVisible } = dependencies
  const now = () => new Date(clock.now())

  /**
   * Counts a request for the rate limits, and returns whether mails may be sent. It runs before any user is looked up.
   * The limit of the client is checked first, so that a client over its own limit cannot use up the limits of email
   * addresses. If one of two addresses is over its limit, neither address gets a mail. Otherwise, a client could
   * request an email change without a notice to the current address.
   */
  async function mayMail(client: string, addresses: readonly string[]): Promise<boolean> {
    if (!(await limiters.perAddress.consume(client)).allowed) return false
    const results = await Promise.all(addresses.map(address => limiters.perEmail.consume(address)))
    return results.every(({ allowed }) => allowed)
  }

  async function sendReset(email: string, client: string): Promise<void> {
    if (!(await mayMail(client, [email])) || !isMailbox(email)) return
    if (await issues.issueReset(email, ttlMs.reset, now())) mails.wake()
  }

  async function sendChange(
    user: EmailChangeRequest['user'],
    newEmail: string,
    client: string,
  ): Promise<void> {
    const addresses = notices ? [...new Set([newEmail, user.email])] : [newEmail]
    if (!(await mayMail(client, addresses))) return
    if (await issues.issueEmailChange({ user, newEmail, notices, ttlMs: ttlMs.email }, now())) mails.wake()
  }

  return {
    passwordReset: {
      async forgot(email, client) {
        if (!isStorableEmail(email)) throw new Refusal('email_invalid')
        await roundUpDuration(() => sendReset(email, client))
        return { message: messages.resetRequested }
      },
      validateNewPassword,
      async reset(submitted, newPassword) {
        const user = await redeemCode('reset', submitted, async (row, at) => {
          validateNewPassword(newPassword, row.email)
          return redemptions.resetPassword(row, await passwords.hash(newPassword), at)
        })
        mails.wake()
        await changesVisible()
        return user.id
      },
    },

    verification: {
      async request(user, client) {
        if (!(await mayMail(client, [user.email])) || !isMailbox(user.email)) return
        if (await issues.issueVerification(user, ttlMs.verify, now())) mails.wake()
      },
      async verify(submitted) {
        const { id } = await redeemCode('verify', submitted, redemptions.verifyEmail)
        // When this method resolves, routes that require a verified email must accept the user.
        await changesVisible()
        return id
      },
    },

    emailChange: {
      request: (user, newEmail, client) => roundUpDuration(() => sendChange(user, newEmail, client)),
      async confirm(submitted, current) {
        const result = await redeemCode('email', submitted, (row, at) =>
          redemptions.changeEmail(row, current, at),
        )
        if (result === 'email_taken') throw new Refusal('email_taken')
        mails.wake()
        await changesVisible()
        return result
      },
    },
  }
}
