// Verified emails: a code by mail, which shows that its reader has the address (CONTRACT §12, "Email").
import type { Clock } from '../clock.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import type { MailLimits } from '../mail/mail-limits.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import type { User } from '../users/user.ts'
import type { CodeChangeStore } from './code-change-store.ts'
import type { CodeRequestStore } from './code-request-store.ts'
import type { CodeUse, PresentedCode } from './code-use.ts'

export interface EmailVerification {
  /**
   * Sends a code, unless a limit is reached: nobody is told.
   * @param client its rate-limit key
   * @throws StorageError
   */
  request(user: Pick<User, 'id' | 'email'>, client: string): Promise<void>
  /**
   * @returns the user's id
   * @throws Refusal `code_invalid`
   * @throws StorageError
   */
  verify(presented: PresentedCode): Promise<number>
}

interface Dependencies {
  requests: Pick<CodeRequestStore, 'requestVerification'>
  changes: Pick<CodeChangeStore, 'verifyEmail'>
  codeUse: CodeUse
  limits: MailLimits
  mails: Pick<MailQueue, 'wake'>
  clock: Clock
  ttlMs: number
  /** Resolves when the change is visible everywhere: routes with `verified` go by it. */
  changesVisible(): Promise<void>
}

export function createEmailVerification(dependencies: Dependencies): EmailVerification {
  const { requests, changes, codeUse, limits, mails, clock, ttlMs, changesVisible } = dependencies
  return {
    async request(user, client) {
      if (!(await limits.allow(client, [user.email])) || !isMailbox(user.email)) return
      if (await requests.requestVerification(user, ttlMs, new Date(clock.now()))) mails.wake()
    },

    async verify(presented) {
      const { id } = await codeUse.run('verify', presented, changes.verifyEmail)
      await changesVisible()
      return id
    },
  }
}
