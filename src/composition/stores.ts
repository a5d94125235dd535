// Creates every store that clients, operators and background work share, once per process.
import { createAccountExportStore } from '../accounts/account-export-store.ts'
import { createCodeIssueStore } from '../accounts/codes/code-issue-store.ts'
import { createCodeRedemptionStore } from '../accounts/codes/code-redemption-store.ts'
import { createSessionStore } from '../accounts/session-store.ts'
import { createAuditStore } from '../admin/audit-store.ts'
import { createUserDetailsStore } from '../admin/user-details-store.ts'
import { createApiTokenStore, revokeApiToken } from '../identity/api-tokens/api-token-store.ts'
import { createKeyStore } from '../identity/keys/key-store.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import type { Database } from '../storage/database.ts'
import { createUsageStore } from '../usage/usage-store.ts'
import type { RecordUserChanges } from '../users/user-change.ts'
import { createUserDirectory } from '../users/user-directory.ts'
import { createUserQueue } from '../users/user-record-store.ts'
import { createUserStatusStore } from '../users/user-status-store.ts'
import { createUserStore } from '../users/user-store.ts'
import { createWebhookStore, removeWebhook } from '../webhooks/webhook-store.ts'

export type Stores = ReturnType<typeof createStores>

interface Dependencies {
  database: Database
  mailQueue: MailQueue
  recordChanges: RecordUserChanges
}

export function createStores({ database, mailQueue, recordChanges }: Dependencies) {
  // The store of API tokens and the store of webhooks share this queue. Tasks that lock the row of the same user wait
  // in the queue, so that each user occupies only one connection of the pool.
  const perUser = createUserQueue()
  return {
    users: createUserStore(database, recordChanges),
    userStatuses: createUserStatusStore(database),
    userDirectory: createUserDirectory(database),
    userDetails: createUserDetailsStore(database),
    sessions: createSessionStore(database),
    apiTokens: createApiTokenStore(database, perUser),
    webhooks: createWebhookStore(database, perUser),
    codeIssues: createCodeIssueStore(database, mailQueue),
    codeRedemptions: createCodeRedemptionStore({
      database,
      async forgetIntegrations(tx, userId, now) {
        await revokeApiToken(tx, userId)
        await removeWebhook(tx, userId, now)
      },
      recordChanges,
    }),
    exports: createAccountExportStore(database),
    usage: createUsageStore(database),
    signingKeys: createKeyStore(database),
    audit: createAuditStore(database),
  }
}
