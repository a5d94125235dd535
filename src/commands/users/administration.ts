// Defines what operators can do with accounts, and implements these operations with the database.
import { createAccountExportStore } from '../../accounts/account-export-store.ts'
import { createIdentityStore, type Identity } from '../../accounts/external/identity-store.ts'
import { withProviderName } from '../../accounts/external/provider-names.ts'
import { createHashCountStore, type HashCount } from '../../accounts/hashes/hash-count-store.ts'
import { createSessionStore, type ListedSession } from '../../accounts/session-store.ts'
import { type PlanListing, toPlanListing } from '../../admin/api/list-plans.ts'
import { previousFields } from '../../admin/api/user-input.ts'
import { userOperations } from '../../admin/api/users.openapi.ts'
import { createAuditStore } from '../../admin/audit-store.ts'
import type { Clock } from '../../clock.ts'
import type { Plans } from '../../config/plans.ts'
import type { Config } from '../../config/sections/schema.ts'
import { createUserKeyStore, type KeyRecord } from '../../identity/api-keys/user-key-store.ts'
import type { Database, Queryable } from '../../storage/database.ts'
import { createQuotaRecordStore } from '../../usage/quota-record-store.ts'
import { type QuotaUsage, readQuotaUsage, resetUses } from '../../usage/quota-usage.ts'
import { createPlanStore } from '../../users/plan-store.ts'
import type { Plan, User } from '../../users/user.ts'
import type { RecordUserChanges } from '../../users/user-change.ts'
import { createUserDirectory } from '../../users/user-directory.ts'
import { createUserQueue, type UserPatch } from '../../users/user-record-store.ts'
import { createUserStore } from '../../users/user-store.ts'
import { type AuditedAction, auditEntry } from './audit-entry.ts'

export type UserRef = { readonly id: number } | { readonly email: string }

export interface UserFilter {
  email?: string
  plan?: Plan
}

/**
 * The operations on accounts for operators. The admin listener of a running gateway offers the same operations. Every
 * method also finds inactive users.
 */
export interface UserAdministration {
  /** Yields one page at a time, ordered by id. */
  list(filter: UserFilter): AsyncIterable<User[]>
  find(ref: UserRef): Promise<User | undefined>
  /** Returns the user's uses of each quota in the plan. */
  usage(user: Pick<User, 'id' | 'plan'>): Promise<QuotaUsage[]>
  /**
   * Returns the identities, oldest first. Undefined if the gateway does not show identities. This happens if the role
   * of the token is not sufficient, or if the gateway has an older version.
   */
  identities(id: number): Promise<readonly NamedIdentity[] | undefined>
  update(id: number, patch: UserPatch): Promise<User | undefined>
  /** Returns the active sessions, oldest first. */
  sessions(id: number): Promise<ListedSession[]>
  /** @returns whether the user exists */
  revokeSessions(id: number): Promise<boolean>
  /** Returns the 100 newest API keys, newest first, including revoked keys. */
  keys(id: number): Promise<KeyRecord[]>
  /**
   * @param key the id of an API key, which may be the key of `/api/v1/user/api-token`; undefined for all keys
   * @returns whether the user exists
   */
  revokeKeys(id: number, key?: string): Promise<boolean>
  /** Creates a user with a subscription to the plan. The default is the first plan. */
  create(email: string, password: string, plan?: Plan): Promise<User | 'email_in_use'>
  /** Sets the password and revokes every session of the user. @returns whether the user exists */
  setPassword(id: number, password: string): Promise<boolean>
  /** @param quota the name of a quota, or `free_daily` for the daily uses; undefined for all uses */
  resetUsage(id: number, quota?: string): Promise<User | undefined>
  /** Returns all data stored about the user, for JSON. Undefined if the user does not exist. */
  export(id: number): Promise<object | undefined>
  delete(id: number): Promise<boolean>
  plans(): Promise<PlanListing>
  /** Counts the users by the format of their password hash. The most frequent format comes first. */
  hashes(): Promise<readonly HashCount[]>
  /** Moves every user of plan `from` to plan `to`, in steps. Yields the number of users that each step moved. */
  movePlan(from: Plan, to: Plan): AsyncIterable<number>
}

/** An identity with the name of its provider, as the admin API shows it. */
export interface NamedIdentity extends Identity {
  readonly provider: string
}

interface DatabaseUsersDependencies {
  database: Database
  clock: Clock
  /** The plans in the configuration file. */
  plans: Plans
  /** The identity providers in the configuration file. */
  providers: Config['auth']['providers']
  recordChanges: RecordUserChanges
  hashPassword(password: string): Promise<string>
}

/** Every method records its changes and exports in the audit log, and throws StorageError if the store fails. */
export function createDatabaseUsers({
  database,
  clock,
  plans,
  providers,
  recordChanges,
  hashPassword,
}: DatabaseUsersDependencies): UserAdministration {
  const users = createUserStore(database, recordChanges)
  const directory = createUserDirectory(database)
  const planStore = createPlanStore(database, recordChanges)
  const sessions = createSessionStore(database)
  const quotaRecords = createQuotaRecordStore(database)
  const readUsage = ({ id, plan }: Pick<User, 'id' | 'plan'>, tx?: Queryable) =>
    readQuotaUsage(quotaRecords, id, plans.find(plan), tx)
  const perUser = createUserQueue()
  const userKeys = createUserKeyStore({ database, perUser, recordChanges })
  const identities = createIdentityStore({ database, perUser, recordChanges })
  const exports = createAccountExportStore({
    database,
    userKeys,
    identities,
    readUsage: (tx, user) => readUsage(user, tx),
  })
  const audit = createAuditStore(database)
  const record = (action: AuditedAction) => auditEntry(clock, action)
  const audited = (action: AuditedAction) => audit.inTransaction(record(action))
  return {
    async *list(filter) {
      let last: number | undefined
      for (let hasMore = true; hasMore; ) {
        const page = await directory.page(filter, last, pageSize)
        yield page.users
        last = page.users.at(-1)?.id
        hasMore = page.hasMore
      }
    },
    find: ref => ('id' in ref ? users.findById(ref.id) : users.findByEmail(ref.email)),
    usage: user => readUsage(user),
    identities: async id =>
      (await identities.list(id)).map(identity => withProviderName(providers, identity)),
    async update(userId, fields) {
      const user = await users.update(userId, fields, (tx, before) => {
        const previous = previousFields(fields, before)
        return audited({ operation: userOperations.change, userId, fields, previous })(tx)
      })
      if (user === 'email_taken') throw new Error('the email is in use by another user')
      return user
    },
    sessions: id => sessions.list(id, new Date(clock.now())),
    revokeSessions: userId =>
      sessions.revokeAll(userId, audited({ operation: userOperations.endSessions, userId })),
    keys: id => userKeys.listNewest(id),
    async revokeKeys(userId, key) {
      const now = new Date(clock.now())
      const revoked =
        key === undefined
          ? await userKeys.revokeAll(userId, now, audited({ operation: userOperations.revokeKeys, userId }))
          : await userKeys.revoke(
              userId,
              key,
              now,
              audited({ operation: userOperations.revokeKey, userId, fields: { key } }),
            )
      return revoked !== undefined
    },

    async create(email, password, plan = plans.first.name) {
      const fields = { email, password, plan }
      const hash = await hashPassword(password)
      const created = await users.create(email, hash, { plan }, (tx, { id: userId }) =>
        audited({ operation: userOperations.create, userId, fields })(tx),
      )
      return created.outcome === 'email_in_use' ? 'email_in_use' : created.user
    },
    async setPassword(userId, password) {
      const hash = await hashPassword(password)
      const step = audited({ operation: userOperations.setPassword, userId, fields: { password } })
      return users.setPassword(userId, hash, step)
    },
    resetUsage(userId, quota) {
      const fields = quota === undefined ? {} : { quota }
      const step = audited({ operation: userOperations.resetUsage, userId, fields })
      return resetUses({ users, quotaRecords }, userId, quota, step)
    },
    async export(userId) {
      const exported = await exports.read(userId, new Date(clock.now()))
      if (exported !== undefined) await audit.write(record({ operation: userOperations.export, userId }))
      return exported
    },
    delete: userId =>
      users.delete(userId, { inTransaction: audited({ operation: userOperations.remove, userId }) }),
    hashes: () => createHashCountStore(database).count(hashCountTimeoutMs),
    plans: async () => toPlanListing(plans, await planStore.count()),
    async *movePlan(from, to) {
      const { user_id: _, ...change } = record({
        operation: userOperations.change,
        userId: 0,
        fields: { plan: to },
        previous: { plan: from },
      })
      for (let last = 0; ; ) {
        const moved = await planStore.moveNext({ from, to }, last, ids => audit.forUsers(change, ids))
        if (moved === undefined) return
        last = moved.last
        yield moved.count
      }
    },
  }
}

const pageSize = 100

/** The time limit of a statement that reads all users. No request waits for this statement. */
const hashCountTimeoutMs = 600_000
