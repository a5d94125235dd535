// Changes that users make to their own account. They need the current password, so that a stolen token is not enough.
import { Refusal } from '../refusals/refusal.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { Passwords } from './password.ts'
import type { Sessions, SignedIn } from './sessions.ts'

type Owner = Pick<User, 'id' | 'email'>

/**
 * Every method throws Refusal `credentials_invalid` if the current password is wrong, and `service_unavailable` if the
 * hashing queue is full. Every method may throw StorageError.
 */
export interface OwnAccount {
  /** Checks the current password. @returns the hash that was checked, and the session epoch read with it */
  checkPassword(owner: Owner, current: string): Promise<{ hash: string; sessionEpoch: number }>
  /**
   * Sets the password, ends every session and opens a new one. If several concurrent changes use the same current
   * password, only one succeeds. The others fail, because their current password is then wrong.
   * @param change the input of the client; `next` is already validated, and `userAgent` is the text that the user sees
   *   with the new session
   * @throws Refusal `password_unchanged`
   */
  changePassword(
    owner: Owner,
    change: { current: string; next: string; userAgent: string | undefined },
  ): Promise<SignedIn>
  /**
   * Deletes the account. Only one of several concurrent deletions succeeds. The others fail as if the current password
   * were wrong.
   */
  delete(owner: Owner, current: string): Promise<void>
}

interface Dependencies {
  users: Pick<UserStore, 'findPasswordRecord' | 'changePassword' | 'delete'>
  passwords: Passwords
  sessions: Pick<Sessions, 'createWith'>
  /** Resolves when every process sees the deletion. From then on, tokens and API keys of the account are refused. */
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
