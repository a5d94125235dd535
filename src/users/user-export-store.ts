// Reads all users from one snapshot of the database, with the fields that an import needs.
import type { Database } from '../storage/database.ts'
import type { Plan } from './user.ts'
import type { ImportedIdentity } from './user-import-store.ts'

export interface ExportedUser {
  readonly id: number
  readonly email: string
  readonly password_hash: string
  readonly plan: Plan
  readonly email_verified: boolean
  readonly is_active: boolean
  readonly created_at: Date
  readonly identities: readonly ImportedIdentity[]
}

export interface UserExportStore {
  /**
   * Calls `work` with all users, ordered by id, page by page. Changes after the start of the call are not visible.
   * @throws StorageError if the store fails
   */
  read<T>(work: (pages: AsyncIterable<ExportedUser[]>) => Promise<T>): Promise<T>
}

const pageSize = 500

/** The time limit of each statement. It is long, because no request waits for an export. */
const timeoutMs = 10_000

export function createUserExportStore(database: Database): UserExportStore {
  return {
    read: work =>
      database.transaction(
        async tx => {
          await tx.query('set transaction isolation level repeatable read, read only')
          async function* pages() {
            for (let last = 0; ; ) {
              const users = await tx.query<ExportedUser>(pageSql, [last, pageSize])
              const end = users.at(-1)
              if (end === undefined) return
              yield users
              last = end.id
            }
          }
          return work(pages())
        },
        { timeoutMs },
      ),
  }
}

const pageSql = `
  select u.id, u.email, u.password_hash, u.plan,
         u.email_verified_at is not null as email_verified, u.is_active = 1 as is_active, u.created_at,
         coalesce(
           (select json_agg(json_build_object('issuer', i.issuer, 'sub', i.sub, 'email', i.email) order by i.issuer)
              from identities i where i.user_id = u.id),
           '[]'
         ) as identities
    from users u where u.id > $1 order by u.id limit $2`
