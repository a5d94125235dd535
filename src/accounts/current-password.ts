// The password that a user who is signed in has to give again, before what a stolen token must not do.
import { Refusal } from '../refusals/refusal.ts'
import type { UserStore } from '../users/user-store.ts'
import type { Passwords } from './password.ts'

interface CheckedPassword {
  readonly hash: string
  readonly sessionEpoch: number
}

export interface CurrentPassword {
  /**
   * @returns the hash that was checked, and the session epoch read with it: by either a change of the password in
   * between shows
   * @throws Refusal `credentials_invalid`; `service_unavailable` when the hashing queue is full
   * @throws StorageError
   */
  verify(user: { id: number; email: string }, password: string): Promise<CheckedPassword>
}

interface Dependencies {
  users: Pick<UserStore, 'findPasswordRecord'>
  passwords: Pick<Passwords, 'verify'>
}

export function createCurrentPassword({ users, passwords }: Dependencies): CurrentPassword {
  return {
    async verify(user, password) {
      const found = await users.findPasswordRecord(user.email)
      const record = found?.id === user.id && found.is_active === 1 ? found : undefined
      const isRight = await passwords.verify(record?.password_hash, password)
      if (record === undefined || !isRight) throw new Refusal('credentials_invalid')
      return { hash: record.password_hash, sessionEpoch: record.session_epoch }
    },
  }
}
