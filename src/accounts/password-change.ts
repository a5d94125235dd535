// A user's change of their own password: it ends every session and opens a new one (CONTRACT §12, "Password").
import { Refusal } from '../refusals/refusal.ts'
import type { UserStore } from '../users/user-store.ts'
import type { CurrentPassword } from './current-password.ts'
import type { Passwords } from './password.ts'
import type { Sessions, SignedIn } from './sessions.ts'

interface Change {
  /** The current password, as submitted. */
  readonly current: string
  /** Of a form that an account can have. */
  readonly next: string
  /** Shown to the user with the new session. */
  readonly userAgent: string | undefined
}

export interface PasswordChange {
  /**
   * Of concurrent changes with one current password, one wins: for the others that password is wrong by then.
   * @throws Refusal `credentials_invalid`, `password_unchanged`; `service_unavailable` when the hashing queue is full
   * @throws StorageError
   */
  change(user: { id: number; email: string }, change: Change): Promise<SignedIn>
}

interface Dependencies {
  users: Pick<UserStore, 'changePassword'>
  passwords: Pick<Passwords, 'hash'>
  currentPassword: CurrentPassword
  sessions: Pick<Sessions, 'createWith'>
}

export function createPasswordChange({
  users,
  passwords,
  currentPassword,
  sessions,
}: Dependencies): PasswordChange {
  return {
    async change(user, { current, next, userAgent }) {
      const { hash: checked } = await currentPassword.verify(user, current)
      if (next === current) throw new Refusal('password_unchanged')
      const hash = { checked, next: await passwords.hash(next) }
      const signedIn = await sessions.createWith(user.id, userAgent, open =>
        users.changePassword(user.id, hash, open),
      )
      if (signedIn === undefined) throw new Refusal('credentials_invalid')
      return signedIn
    },
  }
}
