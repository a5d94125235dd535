// Ends all sessions of a user at once, by raising the user's session epoch; the sessions' records are accounts' (session-store).
import type { Queryable } from '../storage/database.ts'

/**
 * Ends every session of a user, within the caller's transaction. The raised epoch is what ends them; the marks
 * say so in the records. A record that a rotation holds is skipped and not waited for: its epoch is old, and so
 * is its successor's, which copies it (CONTRACT §3). Whether there is such a user.
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
