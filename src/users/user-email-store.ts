// Changes of a user's email and of whether it is verified, as steps of the caller's transaction.
import { type Queryable, StorageError } from '../storage/database.ts'
import type { User } from './user.ts'
import { userColumns } from './user-record-store.ts'

/**
 * Changes the email. What was mailed to the one before is void from then on (migration 11). The caller ends the
 * sessions and tells of the change, with the user locked before.
 * @param email normalised
 * @returns the user as it is now; undefined if the user has this email already, or does not exist
 * @throws StorageError for which `isEmailTaken` is true if another account has it, active or not
 */
export async function setEmail(
  tx: Queryable,
  userId: number,
  email: string,
  isVerified: boolean,
): Promise<User | undefined> {
  const [user] = await tx.query<User>(
    `update users u set email = $2, email_verified_at = case when $3::boolean then now() end
      where u.id = $1 and u.email <> $2
     returning ${userColumns}`,
    [userId, email, isVerified],
  )
  return user
}

/** Whether a transaction failed because two accounts would have had one email. */
export function isEmailTaken(error: unknown): boolean {
  return error instanceof StorageError && error.code === '23505'
}
