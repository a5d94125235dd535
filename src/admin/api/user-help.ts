// What operators do for a user who asks: the mail of a forgotten password, and all that is kept of them (CONTRACT §13).
import type { AccountExportStore } from '../../accounts/account-export-store.ts'
import type { CodeIssueStore } from '../../accounts/codes/code-issue-store.ts'
import type { Clock } from '../../clock.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { AdminEndpoint } from './admin-endpoint.ts'
import { orNotFound, parseUserId } from './user-input.ts'
import { userOperations } from './users.openapi.ts'

export interface UserHelpDependencies {
  users: Pick<UserStore, 'findById'>
  exports: AccountExportStore
  codeIssues: Pick<CodeIssueStore, 'issueReset'>
  /** How long a code is good; undefined where no mails can be sent. */
  resetTtlMs(): number | undefined
  /** Sends what was stored. */
  wakeMails(): void
  clock: Clock
}

export function createUserHelp(dependencies: UserHelpDependencies): AdminEndpoint[] {
  const { users, exports, codeIssues, resetTtlMs, wakeMails, clock } = dependencies
  const now = () => new Date(clock.now())
  return [
    {
      operation: userOperations.sendReset,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const ttlMs = resetTtlMs()
        if (ttlMs === undefined) throw new Refusal('mail_not_configured')
        const user = orNotFound(await users.findById(userId))
        // Asked for by the email that was read: another one by now, or an inactive user, gets nothing.
        const step = audited({ userId, changes: {} })
        if (user.is_active === 0 || !(await codeIssues.issueReset(user.email, ttlMs, now(), step)))
          throw new Refusal('user_inactive')
        wakeMails()
        return { message: messages.mailSent }
      },
    },
    {
      operation: userOperations.export,
      auditsRefusals: true,
      headers: { 'content-disposition': 'attachment' },
      async handle({ params, written }) {
        const userId = parseUserId(params.id)
        const exported = orNotFound(await exports.read(userId, now()))
        await written({ userId, changes: {} })
        return exported
      },
    },
  ]
}
