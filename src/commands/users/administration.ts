// Defines what operators do with accounts, and implements it with the database.
import { randomUUID } from 'node:crypto'
import { createAccountExportStore } from '../../accounts/account-export-store.ts'
import { createSessionStore, type ListedSession } from '../../accounts/session-store.ts'
import { auditedFields, previousFields } from '../../admin/api/user-input.ts'
import { userOperations } from '../../admin/api/users.openapi.ts'
import { type AuditRecord, createAuditStore } from '../../admin/audit-store.ts'
import type { Clock } from '../../clock.ts'
import { type OperationOfOperators, successStatus } from '../../openapi/operation.ts'
import type { Database } from '../../storage/database.ts'
import type { Plan, User } from '../../users/user.ts'
import type { RecordUserChanges } from '../../users/user-change.ts'
import { createUserDirectory } from '../../users/user-directory.ts'
import type { UserPatch } from '../../users/user-record-store.ts'
import { createUserStore } from '../../users/user-store.ts'

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
  update(id: number, patch: UserPatch): Promise<User | undefined>
  /** Returns the active sessions, oldest first. */
  sessions(id: number): Promise<ListedSession[]>
  /** @returns whether the user exists */
  revokeSessions(id: number): Promise<boolean>
  /** Creates a user with a subscription to the plan. */
  create(email: string, password: string, plan: Plan): Promise<User | 'email_in_use'>
  /** Sets the password and revokes every session of the user. @returns whether the user exists */
  setPassword(id: number, password: string): Promise<boolean>
  resetUsage(id: number): Promise<User | undefined>
  /** Returns all data stored about the user, for JSON. Undefined if the user does not exist. */
  export(id: number): Promise<object | undefined>
  delete(id: number): Promise<boolean>
}

interface DatabaseUsersDependencies {
  database: Database
  clock: Clock
  recordChanges: RecordUserChanges
  hashPassword(password: string): Promise<string>
}

/** Records changes and exports in the audit log. Every method throws StorageError if the store fails. */
export function createDatabaseUsers({
  database,
  clock,
  recordChanges,
  hashPassword,
}: DatabaseUsersDependencies): UserAdministration {
  const users = createUserStore(database, recordChanges)
  const directory = createUserDirectory(database)
  const sessions = createSessionStore(database)
  const exports = createAccountExportStore(database)
  const audit = createAuditStore(database)
  /** Returns the audit entry that the corresponding endpoint would write, with the operator `cli`. */
  const record = ({ operation, userId, fields = {}, previous = null }: AuditedAction): AuditRecord => ({
    at: new Date(clock.now()),
    operator: 'cli',
    channel: 'cli',
    method: operation.method,
    route: operation.path,
    user_id: userId,
    changes: auditedFields(fields),
    previous,
    status: successStatus(operation),
    // A command has no request id, so the entry gets a new one.
    request_id: randomUUID(),
  })
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

    async create(email, password, plan) {
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
    resetUsage: userId => users.resetUsage(userId, audited({ operation: userOperations.resetUsage, userId })),
    async export(userId) {
      const exported = await exports.read(userId, new Date(clock.now()))
      if (exported !== undefined) await audit.write(record({ operation: userOperations.export, userId }))
      return exported
    },
    delete: userId =>
      users.delete(userId, { inTransaction: audited({ operation: userOperations.remove, userId }) }),
  }
}

const pageSize = 100

interface AuditedAction {
  readonly operation: Pick<OperationOfOperators, 'method' | 'path' | 'responses'>
  readonly userId: number
  readonly fields?: object
  readonly previous?: AuditRecord['previous'] | undefined
}
