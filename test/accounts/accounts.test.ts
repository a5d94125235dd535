import argon2 from 'argon2'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAccounts } from '../../src/accounts/accounts.ts'
import { createPasswords } from '../../src/accounts/password.ts'
import { newPasswordValidator } from '../../src/accounts/password-rules.ts'
import { sha256Hex } from '../../src/identity/token-hash.ts'
import { messages } from '../../src/refusals/catalog.ts'
import { type Database, StorageError } from '../../src/storage/database.ts'
import { lendDatabase } from '../support/lent-database.ts'
import { describeOverSetups } from '../support/setups.ts'
import { openRoom, outcome, password, type Room, tally } from './setup.ts'

const hashes = vi.spyOn(argon2, 'hash')
const verifications = vi.spyOn(argon2, 'verify')
beforeEach(() => {
  hashes.mockClear()
  verifications.mockClear()
})

describeOverSetups('accounts', ({ openDatabase: open }) => {
  let database: Database
  let room: Room

  beforeAll(async () => {
    database = await open()
    room = await openRoom(database)
  })
  afterAll(() => database.close())

  const register = (email: string, given = password) =>
    outcome(room.accounts.register({ email, password: given }))
  const login = (email: string, given = password) => outcome(room.accounts.login({ email, password: given }))
  const usersWith = async (email: string) =>
    (await database.query('select 1 from users where email = $1', [email])).length

  describe('register', () => {
    it('creates an account with the plan `free` and the trimmed, lower-case email', async () => {
      const answer = await room.accounts.register({ email: ' New@Example.com\n', password })
      expect(answer).toEqual({ message: messages.registered, user_id: expect.any(Number) })
      expect(await room.users.findById(answer.user_id)).toMatchObject({
        email: 'new@example.com',
        plan: 'free',
      })
    })

    it('checks the email, then the password length, then whether the email is taken', async () => {
      await room.register('order@example.com')
      expect(await register('no-at-sign', '')).toBe('email_invalid')
      expect(await register('', 'a'.repeat(2000))).toBe('email_invalid')
      expect(await register('a\0@b.c')).toBe('email_invalid')
      expect(await register('order@example.com', '1234567')).toBe('password_too_short')
      expect(await register('order@example.com', '12345678\ud83d')).toBe('password_too_short')
      expect(await register('order@example.com', 'a'.repeat(1025))).toBe('password_too_long')
      expect(await register('Order@example.com')).toBe('email_taken')
    })

    it('creates one account for all Unicode spellings of an address, and stores the email in NFC', async () => {
      expect(await register('rene\u0301@example.com')).toBe('ok')
      expect(await usersWith('ren\u00e9@example.com')).toBe(1)
      expect(await register('ren\u00e9@example.com')).toBe('email_taken')
      expect(await register('RENE\u0301@Example.com')).toBe('email_taken')
      expect(await register('rene\u200b@example.com')).toBe('email_invalid')
      for (const email of ['rene\u0301@example.com', 'ren\u00e9@example.com']) {
        expect(await login(email)).toBe('ok')
      }
    })

    it('computes no hash if the email is taken', async () => {
      await room.register('taken@example.com')
      hashes.mockClear()
      expect(await register('taken@example.com')).toBe('email_taken')
      expect(hashes).not.toHaveBeenCalled()
    })

    it('responds with 500 for the email of an inactive account and changes nothing', async () => {
      const id = await room.register('inactive@example.com')
      await room.users.update(id, { is_active: 0 })
      expect(await register('inactive@example.com', 'un autre mot de passe')).toBe('internal')
      expect(await usersWith('inactive@example.com')).toBe(1)
      expect(await room.users.findById(id)).toMatchObject({ is_active: 0 })
    })

    it('stores nothing if the subscription cannot be stored', async () => {
      await database.query('alter table subscriptions rename to elsewhere')
      expect(await register('unit@example.com')).toBe('internal')
      expect(await usersWith('unit@example.com')).toBe(0)
      await database.query('alter table elsewhere rename to subscriptions')
      expect(await register('unit@example.com')).toBe('ok')
    })

    it('creates one account and computes one hash for 200 simultaneous calls with the same email', async () => {
      const outcomes = await Promise.all(Array.from({ length: 200 }, () => register('parallel@example.com')))
      expect(tally(outcomes)).toEqual({ ok: 1, email_taken: 199 })
      expect(await usersWith('parallel@example.com')).toBe(1)
      expect(hashes).toHaveBeenCalledTimes(1)
    })

    it('creates one account for simultaneous calls with the same email on two replicas, and refuses the other calls with email_taken', async () => {
      const other = await openRoom(database)
      for (let round = 0; round < 5; round += 1) {
        const email = `replicas${round}@example.com`
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            outcome((i % 2 ? room : other).accounts.register({ email, password })),
          ),
        )
        expect(tally(outcomes)).toEqual({ ok: 1, email_taken: 19 })
      }
    })

    it('if the first of many simultaneous calls with the same email fails, all of them fail', async () => {
      const id = await room.register('shared@example.com')
      await room.users.update(id, { is_active: 0 })
      hashes.mockClear()
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => register('shared@example.com')))
      expect(tally(outcomes)).toEqual({ internal: 10 })
      expect(hashes).toHaveBeenCalledTimes(1)
      await room.users.delete(id)
      expect(await register('shared@example.com')).toBe('ok')
    })

    it('responds with 503 while the hashing queue is full, and succeeds as soon as the queue has room', async () => {
      const busy = await openRoom(database, { hashing: { concurrency: 1, queue: 1, wait: 5_000 } })
      // Opens all database connections now, so that every registration reaches the queue before the first hash ends.
      await Promise.all(Array.from({ length: 6 }, () => database.query('select pg_sleep(0.1)')))
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          outcome(busy.accounts.register({ email: `full${i}@example.com`, password })),
        ),
      )
      expect(tally(outcomes)).toEqual({ ok: 2, service_unavailable: 4 })
      expect(await outcome(busy.accounts.register({ email: 'full@example.com', password }))).toBe('ok')
    })
  })

  describe('login', () => {
    it('finds an account from version 0.1, which stored emails without normalization', async () => {
      const rename = (id: number, email: string) =>
        database.query('update users set email = $2 where id = $1', [id, email])
      const [apart, together, hidden] = [
        await room.register('apart@example.com'),
        await room.register('zo\u00eb@example.com'),
        await room.register('hidden@example.com'),
      ]
      await rename(apart, 'zoe\u0308@example.com')
      await rename(hidden, 'zo\u200be@example.com')
      const idOf = async (email: string) => {
        const { refresh_token } = await room.accounts.login({ email, password })
        const [row] = await database.query<{ user_id: number }>(
          'select user_id from refresh_tokens where token_hash = $1',
          [sha256Hex(refresh_token)],
        )
        return row?.user_id
      }
      expect(await idOf('Zoe\u0308@example.com')).toBe(apart)
      expect(await idOf('zo\u00eb@example.com')).toBe(together)
      expect(await idOf('zo\u200be@example.com')).toBe(hidden)
    })

    let id: number
    beforeAll(async () => {
      id = (await room.accounts.register({ email: 'login@example.com', password })).user_id
      const inactive = await room.register('gone@example.com')
      await room.users.update(inactive, { is_active: 0 })
    })

    it('returns two tokens and the current plan if the password is right', async () => {
      await room.users.update(id, { plan: 'premium' })
      const { userId, ...pair } = await room.accounts.login({ email: ' LOGIN@example.com ', password })
      expect(userId).toBe(id)
      expect(pair).toEqual({
        access_token: expect.any(String),
        refresh_token: expect.any(String),
        token_type: 'Bearer',
        plan: 'premium',
      })
      expect(await room.tokens.verifyAccess(pair.access_token)).toMatchObject({ userId: id })
    })

    it('is refused as incomplete if the email or the password is empty, but a password of white space is checked', async () => {
      expect(await login('', password)).toBe('credentials_missing')
      expect(await login(' \t', password)).toBe('credentials_missing')
      expect(await login('login@example.com', '')).toBe('credentials_missing')
      expect(await login('login@example.com', '   ')).toBe('credentials_invalid')
    })

    it.each([
      ['a wrong password', 'login@example.com', 'un autre mot de passe'],
      ['an unknown email', 'unknown@example.com', password],
      ['an email that no account can have', 'no-at-sign', password],
      ['an inactive account', 'gone@example.com', password],
      ['a password that is too long', 'login@example.com', 'a'.repeat(1025)],
      ['a lone surrogate', 'login@example.com', '\ud83d'],
    ])('responds to %s with credentials_invalid after one password comparison', async (_, email, given) => {
      expect(await login(email, given)).toBe('credentials_invalid')
      expect(verifications).toHaveBeenCalledTimes(1)
      expect(hashes).not.toHaveBeenCalled()
    })

    it('stores one session if it succeeds, and none if it is refused', async () => {
      const before = (await room.activeSessions(id)).length
      await login('login@example.com', 'un autre mot de passe')
      expect(await room.activeSessions(id)).toHaveLength(before)
      await login('login@example.com')
      expect(await room.activeSessions(id)).toHaveLength(before + 1)
    })

    it('does not query the database for an email that Postgres cannot store', async () => {
      const seen: unknown[] = []
      const watched: Database = {
        ...database,
        query: (sql, values) => {
          seen.push(...(values ?? []))
          return database.query(sql, values)
        },
      }
      const { accounts } = await openRoom(watched)
      seen.length = 0
      for (const email of ['a\0@b.c', `${'a'.repeat(10_000)}@b.c`, 'a\ud800@b.c']) {
        expect(await outcome(accounts.login({ email, password }))).toBe('credentials_invalid')
      }
      expect(seen).toEqual([])
    })

    /** Runs a login, and runs `happens` right after the password was verified. */
    async function loginWhile(email: string, happens: () => Promise<unknown>) {
      const passwords = createPasswords({ concurrency: 1, queue: 1, wait: 5_000 })
      const accounts = createAccounts({
        users: room.users,
        firstPlan: 'free',
        sessions: room.sessions,
        validateNewPassword: newPasswordValidator('allow'),
        passwords: {
          ...passwords,
          async verify(...given) {
            const right = await passwords.verify(...given)
            await happens()
            return right
          },
        },
      })
      return accounts.login({ email, password })
    }

    it('is refused if the account is deactivated just after the password was verified', async () => {
      const late = await room.register('late@example.com')
      const tried = loginWhile('late@example.com', () => room.users.update(late, { is_active: 0 }))
      expect(await outcome(tried)).toBe('credentials_invalid')
      expect(await database.query('select 1 from refresh_tokens where user_id = $1', [late])).toEqual([])
    })

    it('creates an inactive session if the password changes or all sessions are revoked during the login', async () => {
      const changed = await room.register('changed@example.com')
      for (const happens of [
        () => room.store.revokeAll(changed),
        async () => room.users.setPassword(changed, await argon2.hash(password)),
      ]) {
        const pair = await loginWhile('changed@example.com', happens)
        expect(await outcome(room.sessions.refresh(pair.refresh_token))).toBe('refresh_token_inactive')
      }
      expect(await room.activeSessions(changed)).toEqual([])
    })
  })
})

describe('while the store is down', () => {
  it('register is refused with the error code internal, and login throws a StorageError', async () => {
    const database = await lendDatabase()
    const room = await openRoom(database)
    await room.register('before@example.com')
    await database.close()
    expect(await outcome(room.accounts.register({ email: 'after@example.com', password }))).toBe('internal')
    const login = room.accounts.login({ email: 'before@example.com', password })
    await expect(login).rejects.toBeInstanceOf(StorageError)
  })
})
