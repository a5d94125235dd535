// Ends all sessions of a user by raising the session epoch; accounts/session-store.ts owns the session records.
import type { Queryable } from '../storage/database.ts'

/**
 * Ends every session of a user, within the caller's transaction. The raised epoch invalidates them; `revoked` only
 * records it. A record that a rotation has locked is skipped without waiting: its epoch is outdated, and its
 * successor copies that epoch (CONTRACT §3).
 * @returns whether the user exists
 */
export async function endSessions(tx: Queryable, userId: number): Promise<boolean> {
  const users = await tx.query(
    'update users set session_epoch = session_epoch + 1 where id = $1 returning id',
    [userId],
  )
  await tx.query(
    `update refresh_tokens set revoked = 1 where id in (
       select id from refresh_tokens where user_id = $1 and revoked = 0 for update skip locked
     )`,
    [userId],
  )
  return users.length > 0
}
