// Changes that users make to their own account. Each change requires the current password, so that a stolen token is
// not enough.
import { Refusal } from '../refusals/refusal.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { noHash } from './hashes/foreign-hash.ts'
import type { Passwords } from './password.ts'
import type { Sessions, SignedIn } from './sessions.ts'

type Owner = Pick<User, 'id' | 'email'>

/**
 * Every method that checks the current password throws Refusal `credentials_invalid` if the password is wrong. It
 * throws `password_not_set` if the account has no password, and `service_unavailable` if the hashing queue is full.
 * Every method may throw StorageError.
 */
export interface OwnAccount {
  /** Returns whether the user has a password. */
  hasPassword(userId: number): Promise<boolean>
  /**
   * Checks the current password.
   * @returns the stored hash that the password matched, and the session epoch that was read with this hash
   */
  checkPassword(owner: Owner, current: string): Promise<{ hash: string; sessionEpoch: number }>
  /**
   * Sets the password, ends every session and opens a new session. If several concurrent changes use the same current
   * password, only one succeeds. The other changes fail as if the current password were wrong.
   * @param change the input of the client; `next` is already validated, and the user sees `userAgent` in the list of
   *   sessions
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
  users: Pick<UserStore, 'findPasswordHash' | 'findPasswordRecord' | 'changePassword' | 'delete'>
  passwords: Passwords
  sessions: Pick<Sessions, 'createWith'>
  /** Resolves when every process sees the deletion. Every process then refuses tokens and API keys of the account. */
  changesVisible(): Promise<void>
}

export function createOwnAccount({ users, passwords, sessions, changesVisible }: Dependencies): OwnAccount {
  async function checkPassword({ id, email }: Owner, current: string) {
    const found = await users.findPasswordRecord(email)
    const record = found?.id === id && found.is_active === 1 ? found : undefined
    // The caller is signed in to this account, so the response can reveal that the account has no password.
    if (record?.password_hash === noHash) throw new Refusal('password_not_set')
    const isRight = await passwords.verify(record?.password_hash, current)
    if (record === undefined || !isRight) throw new Refusal('credentials_invalid')
    return { hash: record.password_hash, sessionEpoch: record.session_epoch }
  }

  /**
   * Checks the current password, and then makes a change if the checked hash is still stored.
   * @param change makes the change; returns undefined, with nothing changed, if the stored hash is not `checkedHash`
   */
  async function changeWithPassword<T>(
    owner: Owner,
    current: string,
    change: (checkedHash: string) => Promise<T | undefined>,
  ): Promise<T> {
    const { hash } = await checkPassword(owner, current)
    const changed = await change(hash)
    if (changed !== undefined) return changed
    // A login may have replaced the hash with another hash of the same password, so the password is checked once more.
    const { hash: replaced } = await checkPassword(owner, current)
    const changedLater = replaced === hash ? undefined : await change(replaced)
    if (changedLater === undefined) throw new Refusal('credentials_invalid')
    return changedLater
  }

  return {
    async hasPassword(userId) {
      const hash = await users.findPasswordHash(userId)
      return hash !== undefined && hash !== noHash
    },

    checkPassword,

    async changePassword(owner, { current, next, userAgent }) {
      let hashOfNext: string | undefined
      return changeWithPassword(owner, current, async checked => {
        if (next === current) throw new Refusal('password_unchanged')
        hashOfNext ??= await passwords.hash(next)
        const hash = { checked, next: hashOfNext }
        return sessions.createWith(owner.id, userAgent, open => users.changePassword(owner.id, hash, open))
      })
    },

    async delete(owner, current) {
      await changeWithPassword(
        owner,
        current,
        async checkedHash => (await users.delete(owner.id, { checkedHash })) || undefined,
      )
      await changesVisible()
    },
  }
}
