// Stores the API keys of a user, and deletes old keys. Also lists and revokes the key of `/api/v1/user/api-token`.
import type { CoalescingQueue } from '../../async/coalescing-queue.ts'
import { countRows, type Database, type Queryable, type TransactionStep } from '../../storage/database.ts'
import type { User } from '../../users/user.ts'
import type { RecordUserChanges } from '../../users/user-change.ts'
import { lockUser } from '../../users/user-record-store.ts'
import { apiTokenIdColumn, apiTokenIdOf, isApiKeyId } from './api-key-store.ts'
import { revokeApiToken } from './api-token-store.ts'

/** An API key, as its owner sees it. */
export interface ListedKey {
  /** An opaque text of lower-case letters, digits and `-`. */
  readonly id: string
  readonly name: string
  /** The first 12 characters of the key. Null for the key of `/api/v1/user/api-token`. */
  readonly prefix: string | null
  /** Null for a key without a limit. */
  readonly scopes: readonly string[] | null
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly last_used_at: Date | null
}

/** An API key, as operators and exports show it. */
export interface KeyRecord extends ListedKey {
  readonly revoked_at: Date | null
}

export interface NewKey {
  readonly tokenHash: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly string[] | null
  readonly createdAt: Date
  readonly expiresAt: Date | null
}

export interface UserKeyStore {
  /**
   * Returns the keys that are neither revoked nor expired, newest first. Includes the key of `/api/v1/user/api-token`.
   */
  listLive(userId: number, now: Date): Promise<ListedKey[]>
  /** Returns the 100 newest keys, even revoked or expired keys, without the key of `/api/v1/user/api-token`. */
  listNewest(userId: number, tx?: Queryable): Promise<KeyRecord[]>
  /**
   * Stores a key, unless the user was deleted or deactivated in the meantime.
   * @param check runs while the row of the user is locked, so that the number of keys cannot change before the key is
   *   stored; if it throws, nothing is changed
   */
  create(
    userId: number,
    key: NewKey,
    check: (tx: Queryable, user: User, liveKeys: number) => Promise<void>,
  ): Promise<ListedKey | 'user_gone'>
  /**
   * Revokes a key, which may also be the key of `/api/v1/user/api-token`.
   * @param id the id of the key; any text is allowed
   * @returns whether the user had a live key with this id; undefined if the user does not exist
   */
  revoke(userId: number, id: string, now: Date, inTransaction?: TransactionStep): Promise<boolean | undefined>
  /**
   * Revokes all keys, including the key of `/api/v1/user/api-token`.
   * @returns the number of live keys that were revoked; undefined if the user does not exist
   */
  revokeAll(userId: number, now: Date, inTransaction?: TransactionStep): Promise<number | undefined>
  /**
   * Deletes up to `limit` keys that were revoked or expired more than 30 days ago.
   * @returns the number of deleted keys
   */
  prune(now: Date, limit: number): Promise<number>
}

interface Dependencies {
  database: Database
  /** The queue of `createUserQueue`, so that each user occupies only one connection of the pool. */
  perUser: CoalescingQueue<number>
  recordChanges: RecordUserChanges
}

/** Every method throws StorageError when the store fails. */
export function createUserKeyStore({ database, perUser, recordChanges }: Dependencies): UserKeyStore {
  /** Runs a change while the row of the user is locked. @returns undefined if the user does not exist */
  const ofUser = <T>(
    userId: number,
    inTransaction: TransactionStep | undefined,
    change: (tx: Queryable) => Promise<T>,
  ): Promise<T | undefined> =>
    perUser.run(userId, () =>
      database.transaction(async tx => {
        if ((await lockUser(tx, userId)) === undefined) return undefined
        const result = await change(tx)
        await inTransaction?.(tx)
        return result
      }),
    )

  return {
    listLive: (userId, now) =>
      database.query<ListedKey>(
        `select ${columns} from api_keys k where k.user_id = $1 and ${isLive}
         union all
         select ${apiTokenIdColumn}, 'api-token', null, null, t.created_at, null, t.last_used_at
           from api_tokens t where t.user_id = $1 and t.revoked = 0
          order by created_at desc, id desc`,
        [userId, now],
      ),

    listNewest: (userId, tx = database) =>
      tx.query<KeyRecord>(
        `select ${columns}, k.revoked_at from api_keys k where k.user_id = $1
          order by k.created_at desc, k.id desc limit 100`,
        [userId],
      ),

    create: (userId, key, check) =>
      perUser.run(userId, () =>
        database.transaction(async tx => {
          const user = await lockUser(tx, userId)
          if (user?.is_active !== 1) return 'user_gone'
          const { tokenHash, name, prefix, scopes, createdAt, expiresAt } = key
          const live = await countRows(tx, `select from api_keys k where k.user_id = $1 and ${isLive}`, [
            userId,
            createdAt,
          ])
          await check(tx, user, live)
          const [created] = await tx.query<ListedKey>(
            `insert into api_keys as k (user_id, token_hash, name, prefix, scopes, created_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7) returning ${columns}`,
            [userId, tokenHash, name, prefix, scopes, createdAt, expiresAt],
          )
          await recordChanges(tx, [{ type: 'user.api_key_created', user }])
          return created as ListedKey
        }),
      ),

    revoke: (userId, id, now, inTransaction) =>
      ofUser(userId, inTransaction, tx => revokeKey(tx, userId, id, now)),

    revokeAll: (userId, now, inTransaction) =>
      ofUser(userId, inTransaction, tx => revokeKeys(tx, userId, now)),

    prune: (now, limit) =>
      countRows(
        database,
        `delete from api_keys where id in (
           select id from api_keys where least(revoked_at, expires_at) < $1 limit $2 for update skip locked
         ) returning id`,
        [new Date(now.getTime() - retentionMs), limit],
      ),
  }
}

/** How long a revoked or expired key stays in the table, so that operators still see it. */
const retentionMs = 30 * 24 * 60 * 60_000

const columns = 'k.id::text, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.last_used_at'

/** The SQL condition that the row `k` is neither revoked nor expired. `$2` is the current time. */
const isLive = 'k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)'

async function revokeKey(tx: Queryable, userId: number, id: string, now: Date): Promise<boolean> {
  const apiTokenId = apiTokenIdOf(id)
  if (apiTokenId !== undefined) {
    const sql =
      'update api_tokens set revoked = 1 where user_id = $1 and id = $2 and revoked = 0 returning id'
    return (await countRows(tx, sql, [userId, apiTokenId])) > 0
  }
  if (!isApiKeyId(id)) return false
  return (await revokeRecords(tx, 'k.id = $3', [userId, now, id])) > 0
}

/**
 * Revokes all keys of a user, including the key of `/api/v1/user/api-token`. The row of the user must be locked, so
 * that no key is created at the same time.
 * @returns the number of revoked keys that had not expired
 */
export async function revokeKeys(tx: Queryable, userId: number, now: Date): Promise<number> {
  return (await revokeApiToken(tx, userId)) + (await revokeRecords(tx, 'true', [userId, now]))
}

/**
 * Revokes keys in `api_keys`, including expired keys. A replica with a slow clock could still accept an expired key.
 * @returns the number of revoked keys that had not expired
 */
async function revokeRecords(
  tx: Queryable,
  which: string,
  values: readonly [userId: number, now: Date, ...unknown[]],
): Promise<number> {
  const keys = await tx.query<{ is_live: boolean }>(
    `update api_keys k set revoked_at = $2 where k.user_id = $1 and k.revoked_at is null and ${which}
     returning k.expires_at is null or k.expires_at > $2 as is_live`,
    values,
  )
  return keys.filter(({ is_live }) => is_live).length
}
