// Tests how users change their password or delete their account while the stored password hash changes.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOwnAccount } from '../../src/accounts/own-account.ts'
import { createPasswords } from '../../src/accounts/password.ts'
import type { Database } from '../../src/storage/database.ts'
import { describeOverSetups } from '../support/setups.ts'
import { openRoom, outcome } from './setup.ts'

describeOverSetups('the account of a user', setup => {
  let database: Database
  let room: Awaited<ReturnType<typeof openRoom>>
  beforeAll(async () => {
    database = await setup.openDatabase()
    room = await openRoom(database)
  })
  afterAll(() => database?.close())
  const passwords = createPasswords({ concurrency: 2, queue: 64, wait: 5_000 })
  const current = 'un mot de passe'
  let made = 0

  /** Creates a user, and an `OwnAccount` that calls `happens` right after the first check of the password. */
  async function accountWhile(happens: (id: number, checked: string) => Promise<unknown>) {
    made += 1
    const email = `own${made}@example.com`
    const hash = await passwords.hash(current)
    const created = await room.users.create(email, hash)
    if (created.outcome !== 'created') return expect.unreachable()
    let checks = 0
    const account = createOwnAccount({
      users: room.users,
      sessions: room.sessions,
      changesVisible: async () => {},
      passwords: {
        ...passwords,
        async verify(...given) {
          const isRight = await passwords.verify(...given)
          checks += 1
          if (checks === 1) await happens(created.id, hash)
          return isRight
        },
      },
    })
    return { owner: { id: created.id, email }, account, checks: () => checks }
  }
  const rehash = async (id: number, checked: string) =>
    room.users.replaceHash(id, { checked, next: await passwords.hash(current) })
  const change = { current, next: 'un autre mot de passe', userAgent: undefined }

  describe('if a login replaces the password hash during the request', () => {
    it('gets the new password after a second check of the current password', async () => {
      const { owner, account, checks } = await accountWhile(rehash)
      expect(await outcome(account.changePassword(owner, change))).toBe('ok')
      expect(checks()).toBe(2)
      const record = await room.users.findPasswordRecord(owner.email)
      expect(await passwords.verify(record?.password_hash, change.next)).toBe(true)
    })

    it('is deleted after a second check of the current password', async () => {
      const { owner, account, checks } = await accountWhile(rehash)
      expect(await outcome(account.delete(owner, current))).toBe('ok')
      expect(checks()).toBe(2)
      expect(await room.users.findById(owner.id)).toBeUndefined()
    })
  })

  describe('if the password changes during the request', () => {
    const setPassword = async (id: number) => {
      await room.users.setPassword(id, await passwords.hash('encore un autre'))
    }

    it('keeps the password that was set during the request', async () => {
      const { owner, account } = await accountWhile(setPassword)
      expect(await outcome(account.changePassword(owner, change))).toBe('credentials_invalid')
      const record = await room.users.findPasswordRecord(owner.email)
      expect(await passwords.verify(record?.password_hash, 'encore un autre')).toBe(true)
    })

    it('is not deleted', async () => {
      const { owner, account } = await accountWhile(setPassword)
      expect(await outcome(account.delete(owner, current))).toBe('credentials_invalid')
      expect(await room.users.findById(owner.id)).toBeDefined()
    })
  })
})
