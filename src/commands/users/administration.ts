// What operators do with accounts, and how it is done on the database itself.
import { createSessionStore, type Session } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { Database } from '../../storage/database.ts'
import type { Plan, User } from '../../users/user.ts'
import { createUserStore } from '../../users/user-store.ts'

/** How an operator names a user; the email is a normalised one. */
export type UserRef = { readonly id: number } | { readonly email: string }

export interface UserFilter {
  email?: string
  plan?: Plan
}

/** What a running gateway's admin listener offers too (CONTRACT §7). All of it finds inactive users. */
export interface UserAdministration {
  /** In the order of ids, a page at a time. */
  list(filter: UserFilter): AsyncIterable<User[]>
  find(ref: UserRef): Promise<User | undefined>
  /** Nothing where there is no such user. */
  update(id: number, patch: { plan?: Plan; is_active?: 0 | 1 }): Promise<User | undefined>
  /** The active ones, oldest first. */
  sessions(id: number): Promise<Session[]>
  /** Whether there is such a user. */
  revokeSessions(id: number): Promise<boolean>
}

/** What only the database offers. */
export interface DatabaseUsers extends UserAdministration {
  /** Both the user and its subscription are of plan `free`. */
  create(email: string, passwordHash: string): Promise<User | 'email_in_use'>
  /** Also ends every session of the user. Whether there is such a user. */
  setPassword(id: number, passwordHash: string): Promise<boolean>
  /** Whether there is such a user. */
  resetUsage(id: number): Promise<boolean>
  /** Whether there was such a user. */
  delete(id: number): Promise<boolean>
}

/** Every method throws StorageError where the store fails. */
export function createDatabaseUsers(database: Database, clock: Clock): DatabaseUsers {
  const users = createUserStore(database)
  const sessions = createSessionStore(database)
  return {
    async *list(filter) {
      let cursor: number | null = 0
      while (cursor !== null) {
        const page = await users.list({ ...filter, cursor, limit: pageSize })
        yield page.users
        cursor = page.nextCursor
      }
    },
    find: ref => ('id' in ref ? users.findById(ref.id) : users.findByEmail(ref.email)),
    update: (id, patch) => users.update(id, patch),
    sessions: id => sessions.list(id, new Date(clock.now())),
    revokeSessions: id => sessions.revokeAll(id),

    async create(email, passwordHash) {
      const created = await users.create(email, passwordHash)
      if (created.outcome === 'email_in_use') return 'email_in_use'
      const user = await users.findById(created.id)
      if (user === undefined)
        throw new Error(`user ${created.id} was created, and deleted by somebody at once`)
      return user
    },
    setPassword: (id, passwordHash) => users.setPassword(id, passwordHash),
    resetUsage: id => users.resetUsage(id),
    delete: id => users.delete(id),
  }
}

const pageSize = 100
