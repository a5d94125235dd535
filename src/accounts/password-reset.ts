// Forgotten passwords: a code by mail, and a new password by that code (CONTRACT §12, "Password").
import { inWholeSteps } from '../async/whole-steps.ts'
import type { Clock } from '../clock.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import type { MailLimits } from '../mail/mail-limits.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { CodeChangeStore } from './code-change-store.ts'
import type { CodeRequestStore } from './code-request-store.ts'
import type { CodeUse, PresentedCode } from './code-use.ts'
import { isStorableEmail } from './email.ts'
import type { Passwords } from './password.ts'
import type { ValidateNewPassword } from './password-rules.ts'

export interface PasswordReset {
  /**
   * Sends a code to the account's email. Answer and time are the same whether or not there is such an account.
   * @param email normalised
   * @param client its rate-limit key
   * @throws Refusal `email_invalid`
   * @throws StorageError
   */
  forgot(email: string, client: string): Promise<{ message: string }>
  /**
   * The form of the new password, to be checked before a code is tried.
   * @param email as submitted, normalised: of a token's account nothing is known yet
   * @throws Refusal `password_too_short`, `password_too_long`, `password_too_common`
   */
  validateNewPassword: ValidateNewPassword
  /**
   * Sets the password, which is hashed only once the code was right.
   * @returns the user's id
   * @throws Refusal `code_invalid`; where the code stays good `service_unavailable` when the hashing queue is full, and
   * `password_too_common` where the password is the email of the account
   * @throws StorageError
   */
  reset(presented: PresentedCode, newPassword: string): Promise<number>
}

interface Dependencies {
  requests: Pick<CodeRequestStore, 'requestReset'>
  changes: Pick<CodeChangeStore, 'resetPassword'>
  codeUse: CodeUse
  passwords: Pick<Passwords, 'hash'>
  validateNewPassword: ValidateNewPassword
  limits: MailLimits
  mails: Pick<MailQueue, 'wake'>
  clock: Clock
  ttlMs: number
  /** Resolves when the change is visible everywhere: what the account was known by is forgotten. */
  changesVisible(): Promise<void>
}

export function createPasswordReset(dependencies: Dependencies): PasswordReset {
  const {
    requests,
    changes,
    codeUse,
    passwords,
    validateNewPassword,
    limits,
    mails,
    clock,
    ttlMs,
    changesVisible,
  } = dependencies

  async function sendCode(email: string, client: string): Promise<void> {
    if (!(await limits.allow(client, [email])) || !isMailbox(email)) return
    if (await requests.requestReset(email, ttlMs, new Date(clock.now()))) mails.wake()
  }

  return {
    async forgot(email, client) {
      if (!isStorableEmail(email)) throw new Refusal('email_invalid')
      await inWholeSteps(() => sendCode(email, client))
      return { message: messages.resetRequested }
    },

    validateNewPassword,

    async reset(presented, newPassword) {
      const user = await codeUse.run('reset', presented, async (row, now) => {
        validateNewPassword(newPassword, row.email)
        return changes.resetPassword(row, await passwords.hash(newPassword), now)
      })
      mails.wake()
      await changesVisible()
      return user.id
    },
  }
}
