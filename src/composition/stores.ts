// Creates the stores that clients, operators and background work share. Each process creates them once.
import { createAccountExportStore } from '../accounts/account-export-store.ts'
import { createCodeIssueStore } from '../accounts/codes/code-issue-store.ts'
import { createCodeRedemptionStore } from '../accounts/codes/code-redemption-store.ts'
import { createIdentityStore, removeIdentities } from '../accounts/external/identity-store.ts'
import { createSignInCodeStore } from '../accounts/external/sign-in-code-store.ts'
import { createSignInStore } from '../accounts/external/sign-in-store.ts'
import { createHashCountStore } from '../accounts/hashes/hash-count-store.ts'
import { createSessionStore } from '../accounts/session-store.ts'
import { createAuditStore } from '../admin/audit-store.ts'
import { createUserDetailsStore } from '../admin/user-details-store.ts'
import type { Plans } from '../config/plans.ts'
import { createApiKeyStore } from '../identity/api-keys/api-key-store.ts'
import { createApiTokenStore } from '../identity/api-keys/api-token-store.ts'
import { createUserKeyStore, revokeKeys } from '../identity/api-keys/user-key-store.ts'
import { createKeyStore } from '../identity/keys/key-store.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import type { Database, Queryable } from '../storage/database.ts'
import { createQuotaCounter } from '../usage/quota-count-store.ts'
import { createQuotaRecordStore } from '../usage/quota-record-store.ts'
import { readQuotaUsage } from '../usage/quota-usage.ts'
import { createUsageStore } from '../usage/usage-store.ts'
import { createPlanStore } from '../users/plan-store.ts'
import type { User } from '../users/user.ts'
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
  /** The plans of the active configuration. */
  plans(): Plans
}

export function createStores({ database, mailQueue, recordChanges, plans }: Dependencies) {
  // The stores of API keys, identities and webhooks share this queue. Tasks that lock the row of the same user wait
  // in the queue, so that each user occupies only one connection of the pool.
  const perUser = createUserQueue()
  const userKeys = createUserKeyStore({ database, perUser, recordChanges })
  const identities = createIdentityStore({ database, perUser, recordChanges })
  const quotaRecords = createQuotaRecordStore(database)
  /** Revokes the API keys of a user, and removes the webhook and the identities. */
  async function forgetIntegrations(tx: Queryable, user: User, now: Date): Promise<void> {
    await revokeKeys(tx, user.id, now)
    await removeWebhook(tx, user.id, now)
    if ((await removeIdentities(tx, user.id)) > 0)
      await recordChanges(tx, [{ type: 'user.identity_removed', user }])
  }
  return {
    users: createUserStore(database, recordChanges),
    userStatuses: createUserStatusStore(database),
    userDirectory: createUserDirectory(database),
    planStore: createPlanStore(database, recordChanges),
    hashCounts: createHashCountStore(database),
    userDetails: createUserDetailsStore(database),
    sessions: createSessionStore(database),
    apiKeys: createApiKeyStore(database),
    userKeys,
    identities,
    apiTokens: createApiTokenStore({ database, perUser, recordChanges }),
    webhooks: createWebhookStore(database, perUser),
    codeIssues: createCodeIssueStore(database, mailQueue),
    codeRedemptions: createCodeRedemptionStore({ database, forgetIntegrations, recordChanges }),
    signIns: createSignInStore({ database, forgetIntegrations, recordChanges }),
    signInCodes: createSignInCodeStore(database),
    exports: createAccountExportStore({
      database,
      userKeys,
      identities,
      readUsage: (tx, { id, plan }) => readQuotaUsage(quotaRecords, id, plans().find(plan), tx),
    }),
    usage: createUsageStore(database),
    quotas: createQuotaCounter(database),
    quotaRecords,
    signingKeys: createKeyStore(database),
    audit: createAuditStore(database),
  }
}
