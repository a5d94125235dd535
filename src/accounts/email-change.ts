// Another email: asked for with the password, confirmed by the code that the new address gets (CONTRACT §12, "Email").
import { inWholeSteps } from '../async/whole-steps.ts'
import type { Clock } from '../clock.ts'
import type { MailLimits } from '../mail/mail-limits.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { User } from '../users/user.ts'
import type { CodeChangeStore, CurrentSession } from './code-change-store.ts'
import type { CodeRequestStore, EmailChangeRequest } from './code-request-store.ts'
import type { CodeUse, PresentedCode } from './code-use.ts'

type Requester = EmailChangeRequest['user']

export interface EmailChange {
  /**
   * Sends a code to the new email and a notice to the one of now, unless a limit is reached or somebody has the email:
   * nobody is told, and it takes the same time.
   * @param user whose password was right, with the session epoch of then
   * @param newEmail normalised, one mailbox
   * @param client its rate-limit key
   * @throws StorageError
   */
  request(user: Requester, newEmail: string, client: string): Promise<void>
  /**
   * Changes the email, verified from then on.
   * @throws Refusal `code_invalid`, `email_taken`
   * @throws StorageError
   */
  confirm(presented: PresentedCode, current: CurrentSession): Promise<User>
}

interface Dependencies {
  requests: Pick<CodeRequestStore, 'requestEmailChange'>
  changes: Pick<CodeChangeStore, 'changeEmail'>
  codeUse: CodeUse
  limits: MailLimits
  mails: Pick<MailQueue, 'wake'>
  clock: Clock
  ttlMs: number
  /** `mail.notices`. */
  notices: boolean
  /** Resolves when the change is visible everywhere. */
  changesVisible(): Promise<void>
}

export function createEmailChange(dependencies: Dependencies): EmailChange {
  const { requests, changes, codeUse, limits, mails, clock, ttlMs, notices, changesVisible } = dependencies

  async function sendCode(user: Requester, newEmail: string, client: string): Promise<void> {
    const addresses = notices ? [...new Set([newEmail, user.email])] : [newEmail]
    if (!(await limits.allow(client, addresses))) return
    const request = { user, newEmail, notices, ttlMs }
    if (await requests.requestEmailChange(request, new Date(clock.now()))) mails.wake()
  }

  return {
    request: (user, newEmail, client) => inWholeSteps(() => sendCode(user, newEmail, client)),

    async confirm(presented, current) {
      const result = await codeUse.run('email', presented, (row, now) =>
        changes.changeEmail(row, current, now),
      )
      if (result === 'email_taken') throw new Refusal('email_taken')
      mails.wake()
      await changesVisible()
      return result
    },
  }
}
