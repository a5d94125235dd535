// What users do to their own account with the current password, which a stolen token must not do (CONTRACT §12).
import { Refusal } from '../refusals/refusal.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { Passwords } from './password.ts'
import type { Sessions, SignedIn } from './sessions.ts'

type Owner = Pick<User, 'id' | 'email'>

/**
 * Every method throws Refusal `credentials_invalid` if the current password is wrong, `service_unavailable` when the
 * hashing queue is full, and StorageError.
 */
export interface OwnAccount {
  /**
   * @returns the hash that was checked, and the session epoch read with it: by either a change of the password in
   * between shows
   */
  checkPassword(owner: Owner, current: string): Promise<{ hash: string; sessionEpoch: number }>
  /**
   * Ends every session and opens a new one. If concurrent changes use one current password, one of them wins. The others
   * then have a wrong password.
   * @param change `next` has a form that an account can have; `userAgent` is shown to the user with the new session
   * @throws Refusal `password_unchanged`
   */
  changePassword(
    owner: Owner,
    change: { current: string; next: string; userAgent: string | undefined },
  ): Promise<SignedIn>
  /** One of several concurrent deletions wins. The others then have a wrong password. */
  delete(owner: Owner, current: string): Promise<void>
}

interface Dependencies {
  users: Pick<UserStore, 'findPasswordRecord' | 'changePassword' | 'delete'>
  passwords: Passwords
  sessions: Pick<Sessions, 'createWith'>
  /** Resolves when the change is visible everywhere: tokens and API keys are refused. */
  changesVisible(): Promise<void>
}

export function createOwnAccount({ users, passwords, sessions, changesVisible }: Dependencies): OwnAccount {
  async function checkPassword({ id, email }: Owner, current: string) {
    const found = await users.findPasswordRecord(email)
    const record = found?.id === id && found.is_active === 1 ? found : undefined
    const isRight = await passwords.verify(record?.password_hash, current)
    if (record === undefined || !isRight) throw new Refusal('credentials_invalid')
    return { hash: record.password_hash, sessionEpoch: record.session_epoch }
  }

  return {
    checkPassword,

    async changePassword(owner, { current, next, userAgent }) {
      const { hash: checked } = await checkPassword(owner, current)
      if (next === current) throw new Refusal('password_unchanged')
      const hash = { checked, next: await passwords.hash(next) }
      const signedIn = await sessions.createWith(owner.id, userAgent, open =>
        users.changePassword(owner.id, hash, open),
      )
      if (signedIn === undefined) throw new Refusal('credentials_invalid')
      return signedIn
    },

    async delete(owner, current) {
      const { hash } = await checkPassword(owner, current)
      if (!(await users.delete(owner.id, { checkedHash: hash }))) throw new Refusal('credentials_invalid')
      await changesVisible()
    },
  }
}
