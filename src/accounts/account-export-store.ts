// Reads all data stored about one user, for an export by the user or an operator.
import type { KeyRecord, UserKeyStore } from '../identity/api-keys/user-key-store.ts'
import type { Database, Queryable } from '../storage/database.ts'
import type { Plan, User } from '../users/user.ts'
import { userColumns } from '../users/user-record-store.ts'
import type { Identity, IdentityStore } from './external/identity-store.ts'
import { listSessions, type Session } from './session-list.ts'

export interface AccountExport {
  readonly user: User
  readonly subscription: { plan: Plan; created_at: Date; updated_at: Date } | null
  /** The active sessions. */
  readonly sessions: readonly Session[]
  /** The active API token, without its hash. */
  readonly api_token: { created_at: Date; last_used_at: Date | null } | null
  /** The 100 newest API keys, including revoked keys. The fields are the same as in the admin API. */
  readonly api_keys: readonly KeyRecord[]
  /** All identities at identity providers, oldest first. */
  readonly identities: readonly Identity[]
  /** The webhook, without its secret. */
  readonly webhook: { url: string; created_at: Date } | null
  readonly deliveries: readonly ExportedDelivery[]
  /** Mails to the user's current address, without codes. Mails to other addresses are not the user's data. */
  readonly mails: readonly { kind: string; status: string; created_at: Date; sent_at: Date | null }[]
  /** The quotas of the user's plan, and how much of each quota is used. */
  readonly usage: readonly object[]
}

interface ExportedDelivery {
  readonly id: number
  readonly alert_id: string
  readonly type: string | null
  readonly status: string
  readonly attempts: number
  readonly response_status: number | null
  readonly error: string | null
  readonly created_at: Date
  readonly finished_at: Date | null
}

export interface AccountExportStore {
  /** Reads the data of an active or inactive user. Undefined if there is no user with this id. @throws StorageError */
  read(userId: number, now: Date): Promise<AccountExport | undefined>
}

/** Maximum number of sessions, deliveries and mails in an export. Older entries are left out. */
const maxListed = 1000

interface Dependencies {
  database: Database
  userKeys: Pick<UserKeyStore, 'listNewest'>
  identities: Pick<IdentityStore, 'list'>
  /** Reads how much of each quota the user has used, within the transaction of the export. */
  readUsage(tx: Queryable, user: User): Promise<readonly object[]>
}

export function createAccountExportStore({
  database,
  userKeys,
  identities,
  readUsage,
}: Dependencies): AccountExportStore {
  return {
    read: (userId, now) =>
      database.transaction(async tx => {
        // All statements read the same snapshot of the database.
        await tx.query('set transaction isolation level repeatable read, read only')
        const user = await first<User>(tx, `select ${userColumns} from users u where u.id = $1`, [userId])
        if (user === null) return undefined
        return {
          user,
          subscription: await first(
            tx,
            'select plan, created_at, updated_at from subscriptions where user_id = $1',
            [userId],
          ),
          sessions: await listSessions(tx, userId, now, { newest: 'login', limit: maxListed }),
          api_token: await first(
            tx,
            'select created_at, last_used_at from api_tokens where user_id = $1 and revoked = 0',
            [userId],
          ),
          api_keys: await userKeys.listNewest(userId, tx),
          identities: await identities.list(userId, tx),
          webhook: await first(tx, 'select url, created_at from webhooks where user_id = $1', [userId]),
          deliveries: await tx.query<ExportedDelivery>(
            `select d.id, d.alert_id, a.type, d.status, d.attempts, d.response_status, d.error, d.created_at,
                    d.finished_at
               from webhook_deliveries d left join alerts a on a.id = d.alert_id
              where d.user_id = $1
              order by d.id desc
              limit $2`,
            [userId, maxListed],
          ),
          mails: await tx.query(
            `select kind, status, created_at, case when status = 'sent' then finished_at end as sent_at
               from mails
              where user_id = $1 and address = $2
              order by id desc
              limit $3`,
            [userId, user.email, maxListed],
          ),
          usage: await readUsage(tx, user),
        }
      }),
  }
}

async function first<Row extends object>(
  tx: Queryable,
  sql: string,
  values: readonly unknown[],
): Promise<Row | null> {
  const [row] = await tx.query<Row>(sql, values)
  return row ?? null
}
