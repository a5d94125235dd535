// Replaces a refresh token with a new token in one SQL statement. Only one of all concurrent uses of a token succeeds.
import type { Queryable } from '../storage/database.ts'
import type { Plan } from '../users/user.ts'

/** The user to whom a token pair is issued. The SQL statement that stores the new token also reads the user. */
export interface SessionOwner {
  email: string
  plan: Plan
}

export interface NewRefreshToken {
  tokenHash: string
  expiresAt: Date
  sessionId: string
}

export type Rotation =
  | ({ outcome: 'rotated' } & SessionOwner)
  /** The token's record is active, but the user is inactive. Nothing was changed. */
  | { outcome: 'user_inactive' }
  /**
   * The token is not active. `rotatedAt` is the time at which the token was rotated. It is the current time if a
   * concurrent use came first. It is null if the token was never rotated, or if all sessions were ended after the token
   * was issued. In the second case, the session of a thief has ended too, so the use is not treated as theft.
   */
  | { outcome: 'inactive'; rotatedAt: Date | null }

/** The time in milliseconds for which the record of a rotated token is kept, so that a second use can be detected. */
export const rotatedRecordTtlMs = 86_400_000

/** @throws StorageError when the store fails */
export async function rotate(
  queryable: Queryable,
  presented: { userId: number; tokenHash: string },
  successor: NewRefreshToken,
  now: Date,
): Promise<Rotation> {
  const [row] = await queryable.query<RotationRow>(rotationSql, [
    presented.tokenHash,
    presented.userId,
    now,
    successor.tokenHash,
    successor.expiresAt,
    successor.sessionId,
    new Date(now.getTime() + rotatedRecordTtlMs),
  ])
  if (row === undefined) return { outcome: 'inactive', rotatedAt: null }
  if (row.rotated) return { outcome: 'rotated', email: row.email, plan: row.plan }
  if (row.active && row.is_active === 0) return { outcome: 'user_inactive' }
  return { outcome: 'inactive', rotatedAt: row.active ? now : row.rotated_at }
}

interface RotationRow extends SessionOwner {
  is_active: 0 | 1
  rotated_at: Date | null
  active: boolean
  rotated: boolean
}

// All parts of the statement read the same snapshot. If a token is used several times at once, the first use locks the
// record, and the other uses wait in `rotated`. After the first use commits, the other uses find that the record is
// revoked, and update nothing. The statement locks the user before the record, as a deletion does. Otherwise the
// foreign key of the insert would lock the user last, and a rotation and a deletion could deadlock. The lock is KEY
// SHARE, which does not block an update of the session epoch.
const rotationSql = `
  with presented as (
    select t.id, case when t.session_epoch = u.session_epoch then t.rotated_at end as rotated_at, u.email, u.plan, u.is_active, u.session_epoch as users_epoch,
           t.revoked = 0 and t.expires_at > $3::timestamptz and t.session_epoch = u.session_epoch as active
      from refresh_tokens t join users u on u.id = t.user_id
     where t.token_hash = $1 and t.user_id = $2
       for key share of u
  ), rotated as (
    update refresh_tokens t
       set revoked = 1, rotated_at = $3::timestamptz,
           expires_at = case when t.session_id is null then t.expires_at
             else least(t.expires_at, $7::timestamptz) end
      from presented p
     where t.id = p.id
       and t.revoked = 0 and t.expires_at > $3::timestamptz and t.session_epoch = p.users_epoch
       and p.is_active = 1
    returning t.user_id, t.session_epoch, coalesce(t.session_created_at, t.created_at) as session_created_at,
              t.user_agent
  ), successor as (
    insert into refresh_tokens (user_id, session_epoch, token_hash, expires_at, session_id, session_created_at,
      created_at, user_agent)
    select user_id, session_epoch, $4::text, $5::timestamptz, $6::uuid, session_created_at, $3::timestamptz, user_agent
      from rotated
  )
  select p.email, p.plan, p.is_active, p.rotated_at, p.active,
         exists (select from rotated) as rotated
    from presented p`
