// Stores the records of refresh tokens. The SQL statements decide which records are active, and which of several
// concurrent uses of a token succeeds.
import type { ActiveSession } from '../identity/cache/session-cache.ts'
import type { Database, Queryable, TransactionStep } from '../storage/database.ts'
import { endSessions } from '../users/user-store.ts'
import { type NewRefreshToken, type Rotation, rotate, type SessionOwner } from './rotation-store.ts'
import {
  earlierSessionIdOf,
  isActive,
  listSessions,
  type NewestSessions,
  type Session,
  sessionIdOf,
} from './session-list.ts'

/** The values that are stored when the session begins at login. Each later record of the session has a copy of them. */
interface SessionOrigin {
  createdAt: Date
  userAgent: string | null
}

export interface SessionOfUser {
  readonly userId: number
  readonly sessionId: string
}

/** The fields of a session that `peage users sessions` prints. */
export type ListedSession = Pick<Session, 'id' | 'created_at' | 'expires_at'>

export interface SessionStore {
  /**
   * Stores a session. `epoch` was read together with the password's hash. If the user's epoch has changed since then,
   * the new record is inactive from the start. The epoch changes if all sessions are revoked or the password changes.
   */
  create(
    userId: number,
    epoch: number,
    token: NewRefreshToken,
    origin: SessionOrigin,
  ): Promise<SessionOwner | 'user_inactive'>
  /** Finds the session of a refresh token, even if the token's record is revoked or expired. */
  findSession(presented: {
    userId: number
    tokenHash: string
  }): Promise<Pick<Session, 'id' | 'created_at'> | undefined>
  /** Finds the active records of several sessions in one statement. The keys of the result are session ids. */
  findActive(sessions: readonly SessionOfUser[], now: Date): Promise<Map<string, ActiveSession>>
  isLive(userId: number, sessionId: string, now: Date, tx?: Queryable): Promise<boolean>
  /**
   * Ends a session, even if its token is being rotated at the same time. Does nothing if the user has no session with
   * this id.
   * @returns whether the user exists
   */
  end(userId: number, sessionId: string, inTransaction?: TransactionStep): Promise<boolean>
  /**
   * Ends all sessions of a user except `currentId`. Ends every session if `currentId` is undefined.
   * @returns the number of ended sessions that were active
   */
  endOthers(userId: number, currentId: string | undefined, now: Date): Promise<number>
  rotate(
    presented: { userId: number; tokenHash: string },
    successor: NewRefreshToken,
    now: Date,
  ): Promise<Rotation>
  /**
   * Ends the sessions to which these refresh tokens belong, even if the tokens are revoked or expired.
   * @returns the ids of the users whose sessions were ended
   */
  revoke(tokenHashes: readonly string[]): Promise<number[]>
  /** @returns whether the user exists */
  revokeAll(userId: number, inTransaction?: TransactionStep): Promise<boolean>
  /** Lists the active sessions, with the limit and the order of `listSessions`. */
  list(userId: number, now: Date, most?: NewestSessions): Promise<Session[]>
  /** Deletes up to `limit` records whose `expires_at` has passed. @returns the number of deleted records */
  prune(now: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createSessionStore(database: Database): SessionStore {
  async function findActive(sessions: readonly SessionOfUser[], now: Date, queryable: Queryable = database) {
    const rows = await queryable.query<{ id: string; epoch: number; expires_at: Date }>(
      `select asked.session_id as id, t.session_epoch as epoch, t.expires_at
         from unnest($1::bigint[], $3::uuid[]) as asked (user_id, session_id)
         join users u on u.id = asked.user_id
         join refresh_tokens t on t.user_id = u.id and ${sessionIdOf} = asked.session_id
        where ${isActive}
        order by t.expires_at`,
      [sessions.map(one => one.userId), now, sessions.map(one => one.sessionId)],
    )
    return new Map(rows.map(row => [row.id, { epoch: row.epoch, expiresAt: row.expires_at }]))
  }

  return {
    findActive,

    create: (userId, epoch, token, origin) => insertSession(database, userId, epoch, token, origin),

    async findSession({ userId, tokenHash }) {
      const [session] = await database.query<Pick<Session, 'id' | 'created_at'>>(
        `select ${sessionIdOf} as id, coalesce(t.session_created_at, t.created_at) as created_at
           from refresh_tokens t where t.token_hash = $1 and t.user_id = $2`,
        [tokenHash, userId],
      )
      return session
    },

    isLive: async (userId, sessionId, now, tx) =>
      (await findActive([{ userId, sessionId }], now, tx)).has(sessionId),

    end: (userId, sessionId, inTransaction) =>
      database.transaction(async tx => {
        if ((await lockUsers(tx, [userId])).length === 0) return false
        await tx.query(
          `update refresh_tokens t set revoked = 1 where t.user_id = $1 and t.revoked = 0 and ${sessionIdOf} = $2::uuid`,
          [userId, sessionId],
        )
        await inTransaction?.(tx)
        return true
      }),

    endOthers: (userId, currentId, now) =>
      database.transaction(async tx => {
        await lockUsers(tx, [userId])
        const ended = await endOtherSessions(tx, userId, currentId, now)
        // `endSessions` raises the user's session epoch. The new epoch also invalidates codes in mails, and the tokens
        // of logins and rotations in progress.
        if (currentId === undefined) await endSessions(tx, userId)
        return ended
      }),

    rotate: (presented, successor, now) => rotate(database, presented, successor, now),

    revoke: tokenHashes =>
      database.transaction(async tx => {
        const presented = await tx.query<{ user_id: number; session_id: string }>(
          `select t.user_id, s.session_id from refresh_tokens t
            cross join lateral (values (${sessionIdOf}), (${earlierSessionIdOf})) as s (session_id)
            where t.token_hash = any($1::text[])`,
          [tokenHashes],
        )
        if (presented.length === 0) return []
        await lockUsers(
          tx,
          presented.map(record => record.user_id),
        )
        const rows = await tx.query<{ user_id: number }>(
          `update refresh_tokens t set revoked = 1
             from unnest($1::bigint[], $2::uuid[]) as ended (user_id, session_id)
            where t.user_id = ended.user_id and t.revoked = 0 and ${sessionIdOf} = ended.session_id
           returning t.user_id`,
          [presented.map(record => record.user_id), presented.map(record => record.session_id)],
        )
        return [...new Set(rows.map(row => row.user_id))]
      }),

    revokeAll: (userId, inTransaction) =>
      database.transaction(async tx => {
        const isUser = await endSessions(tx, userId)
        if (isUser) await inTransaction?.(tx)
        return isUser
      }),

    list: (userId, now, most) => listSessions(database, userId, now, most),

    async prune(now, limit) {
      const rows = await database.query(
        `delete from refresh_tokens where id = any(array(
           select id from refresh_tokens where expires_at <= $1 order by expires_at limit $2
              for update skip locked
         ))
         returning id`,
        [now, limit],
      )
      return rows.length
    },
  }
}

/**
 * Ends all sessions of a user except `currentId`. Ends every session if `currentId` is undefined. The caller's
 * transaction must already hold an update lock on the user.
 * @returns the number of ended sessions that were active
 */
export async function endOtherSessions(
  tx: Queryable,
  userId: number,
  currentId: string | undefined,
  now: Date,
): Promise<number> {
  const rows = await tx.query<{ was_active: boolean }>(
    `update refresh_tokens t set revoked = 1 from users u
      where u.id = t.user_id and t.user_id = $1 and t.revoked = 0
        and ($3::uuid is null or ${sessionIdOf} <> $3::uuid)
     returning t.expires_at > $2 and t.session_epoch = u.session_epoch as was_active`,
    [userId, now, currentId ?? null],
  )
  return rows.filter(row => row.was_active).length
}

/** Stores a session in the same way as `SessionStore.create`. `queryable` can be a transaction of the caller. */
export async function insertSession(
  queryable: Queryable,
  userId: number,
  epoch: number,
  { tokenHash, expiresAt, sessionId }: NewRefreshToken,
  { createdAt, userAgent }: SessionOrigin,
): Promise<SessionOwner | 'user_inactive'> {
  const [owner] = await queryable.query<SessionOwner>(
    `with owner as (
       select id, email, plan from users where id = $1 and is_active = 1 for key share
     ), stored as (
       insert into refresh_tokens (user_id, session_epoch, token_hash, expires_at, session_id, session_created_at,
         created_at, user_agent)
       select id, $2::integer, $3::text, $4::timestamptz, $5::uuid, $6::timestamptz, $6::timestamptz, $7::text
         from owner
     )
     select email, plan from owner`,
    [userId, epoch, tokenHash, expiresAt, sessionId, createdAt, userAgent],
  )
  return owner ?? 'user_inactive'
}

/**
 * Locks the users for update. A rotation in progress locks its user until the record of the new token is stored. This
 * statement waits for the rotation, so the next statement also sees the new record.
 * @returns one entry for each existing user
 */
async function lockUsers(tx: Queryable, ids: readonly number[]): Promise<object[]> {
  return tx.query('select from users where id = any($1::bigint[]) order by id for update', [ids])
}
