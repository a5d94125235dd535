// A user's deletion of their own account (CONTRACT §12, "Account").
import { Refusal } from '../refusals/refusal.ts'
import type { UserStore } from '../users/user-store.ts'
import type { CurrentPassword } from './current-password.ts'

export interface AccountDeletion {
  /**
   * Of concurrent deletions one wins: for the others the password is wrong by then.
   * @throws Refusal `credentials_invalid`; `service_unavailable` when the hashing queue is full
   * @throws StorageError
   */
  delete(user: { id: number; email: string }, currentPassword: string): Promise<void>
}

interface Dependencies {
  users: Pick<UserStore, 'delete'>
  currentPassword: CurrentPassword
  /** Resolves when the change is visible everywhere: tokens and API keys are refused. */
  changesVisible(): Promise<void>
}

export function createAccountDeletion({
  users,
  currentPassword,
  changesVisible,
}: Dependencies): AccountDeletion {
  return {
    async delete(user, password) {
      const { hash } = await currentPassword.verify(user, password)
      if (!(await users.delete(user.id, { checkedHash: hash }))) throw new Refusal('credentials_invalid')
      await changesVisible()
    },
  }
}
