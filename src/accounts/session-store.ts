// The records of refresh tokens. These statements decide which are active and which of two concurrent uses wins.
import type { Database, TransactionStep } from '../storage/database.ts'
import type { Plan } from '../users/user.ts'
import { endSessions } from '../users/user-store.ts'

/** The user that a token pair is issued to, as the record is now. */
interface SessionOwner {
  email: string
  plan: Plan
}

export interface NewRefreshToken {
  tokenHash: string
  expiresAt: Date
}

type Rotation =
  | ({ outcome: 'rotated' } & SessionOwner)
  /** The record is active and its user is not; nothing was changed (spec §4, refresh rule 4). */
  | { outcome: 'user_inactive' }
  /** No active record (rule 3), or another use of the same token won the race. */
  | { outcome: 'inactive'; rotatedAt: Date | null }

export interface Session {
  id: number
  created_at: Date
  expires_at: Date
}

export interface SessionStore {
  /**
   * Stores a session with the epoch that was read together with the password's hash. If the user's epoch has changed
   * since then (sessions revoked, or the password changed), the new record is inactive from the start.
   */
  create(userId: number, epoch: number, token: NewRefreshToken): Promise<SessionOwner | 'user_inactive'>
  rotate(
    presented: { userId: number; tokenHash: string },
    successor: NewRefreshToken,
    now: Date,
  ): Promise<Rotation>
  /**
   * Revokes tokens whatever their state; unknown tokens change nothing.
   * @returns the owners of the tokens that were not revoked before
   */
  revoke(tokenHashes: readonly string[]): Promise<number[]>
  /** @param inTransaction stored with the revocation @returns whether the user exists */
  revokeAll(userId: number, inTransaction?: TransactionStep): Promise<boolean>
  /** The active sessions, oldest first. */
  list(userId: number, now: Date): Promise<Session[]>
  /** Deletes up to `limit` records whose `expires_at` has passed. @returns how many were deleted */
  prune(now: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createSessionStore(database: Database): SessionStore {
  return {
    async create(userId, epoch, { tokenHash, expiresAt }) {
      const [owner] = await database.query<SessionOwner>(
        `with owner as (
           select id, email, plan from users where id = $1 and is_active = 1 for key share
         ), stored as (
           insert into refresh_tokens (user_id, session_epoch, token_hash, expires_at)
           select id, $2::integer, $3::text, $4::timestamptz from owner
         )
         select email, plan from owner`,
        [userId, epoch, tokenHash, expiresAt],
      )
      return owner ?? 'user_inactive'
    },

    async rotate(presented, successor, now) {
      const [row] = await database.query<RotationRow>(rotationSql, [
        presented.tokenHash,
        presented.userId,
        now,
        successor.tokenHash,
        successor.expiresAt,
      ])
      if (row === undefined) return { outcome: 'inactive', rotatedAt: null }
      if (row.rotated) return { outcome: 'rotated', email: row.email, plan: row.plan }
      if (row.active && row.is_active === 0) return { outcome: 'user_inactive' }
      return { outcome: 'inactive', rotatedAt: row.rotated_at }
    },

    async revoke(tokenHashes) {
      const rows = await database.query<{ user_id: number }>(
        'update refresh_tokens set revoked = 1 where token_hash = any($1::text[]) and revoked = 0 returning user_id',
        [tokenHashes],
      )
      return rows.map(row => row.user_id)
    },

    revokeAll: (userId, inTransaction) =>
      database.transaction(async tx => {
        const isUser = await endSessions(tx, userId)
        if (isUser) await inTransaction?.(tx)
        return isUser
      }),

    list: (userId, now) =>
      database.query<Session>(
        `select t.id, t.created_at, t.expires_at
           from refresh_tokens t join users u on u.id = t.user_id
          where t.user_id = $1 and t.revoked = 0 and t.expires_at > $2 and t.session_epoch = u.session_epoch
          order by t.id`,
        [userId, now],
      ),

    async prune(now, limit) {
      const rows = await database.query(
        `delete from refresh_tokens where id in (
           select id from refresh_tokens where expires_at <= $1 order by expires_at limit $2
              for update skip locked
         )
         returning id`,
        [now, limit],
      )
      return rows.length
    },
  }
}

interface RotationRow extends SessionOwner {
  is_active: 0 | 1
  rotated_at: Date | null
  active: boolean
  rotated: boolean
}

// One statement, one snapshot. Of N uses of one token, the first locks the record and the others wait for it in
// `rotated`; once it has committed, each re-reads the record, finds it revoked and updates nothing. The user is
// locked before the record, in the order that a deletion locks them: otherwise the insert's foreign key would lock
// the user last, and the two could deadlock. KEY SHARE does not block an update of the session epoch.
const rotationSql = `
  with presented as (
    select t.id, t.rotated_at, u.email, u.plan, u.is_active, u.session_epoch as users_epoch,
           t.revoked = 0 and t.expires_at > $3::timestamptz and t.session_epoch = u.session_epoch as active
      from refresh_tokens t join users u on u.id = t.user_id
     where t.token_hash = $1 and t.user_id = $2
       for key share of u
  ), rotated as (
    update refresh_tokens t
       set revoked = 1, rotated_at = $3::timestamptz
      from presented p
     where t.id = p.id
       and t.revoked = 0 and t.expires_at > $3::timestamptz and t.session_epoch = p.users_epoch
       and p.is_active = 1
    returning t.user_id, t.session_epoch
  ), successor as (
    insert into refresh_tokens (user_id, session_epoch, token_hash, expires_at)
    select user_id, session_epoch, $4::text, $5::timestamptz from rotated
  )
  select p.email, p.plan, p.is_active, p.rotated_at, p.active,
         exists (select from rotated) as rotated
    from presented p`
