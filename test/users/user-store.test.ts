import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createUserDirectory } from '../../src/users/user-directory.ts'
import { createUserStore, type UserStore } from '../../src/users/user-store.ts'
import { openRoom, outcome } from '../accounts/setup.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('the records of users', ({ openDatabase: open }) => {
  let database: Database
  let users: UserStore

  beforeAll(async () => {
    database = await open()
    users = createUserStore(database)
  })
  afterAll(() => database.close())

  let count = 0
  async function create(): Promise<{ id: number; email: string }> {
    count += 1
    const email = `user${count}@example.com`
    const created = await users.create(email, 'a hash')
    if (created.outcome !== 'created') throw new Error('not created')
    return { id: created.id, email }
  }

  async function subscribedPlan(id: number): Promise<unknown> {
    return (
      await database.query<{ plan: string }>('select plan from subscriptions where user_id = $1', [id])
    )[0]?.plan
  }

  it('a new user is active and has no uses; the user and the subscription have the plan "free"', async () => {
    const { id, email } = await create()
    expect(await users.findById(id)).toEqual({
      id,
      email,
      plan: 'free',
      is_active: 1,
      daily_usage: 0,
      last_usage_date: null,
      created_at: expect.any(Date),
      email_verified_at: null,
    })
    expect(await subscribedPlan(id)).toBe('free')
  })

  it('an email is unique, even among inactive users, and a second user with this email is not stored', async () => {
    const { id, email } = await create()
    expect(await users.create(email, 'another hash')).toEqual({ outcome: 'email_in_use' })
    await users.update(id, { is_active: 0 })
    expect(await users.create(email, 'another hash')).toEqual({ outcome: 'email_in_use' })
    expect(await users.findPasswordRecord(email)).toMatchObject({ id, password_hash: 'a hash' })
    const orphans = await database.query(
      'select 1 from subscriptions s left join users u on u.id = s.user_id where u.id is null',
    )
    expect(orphans).toEqual([])
  })

  it('an inactive user is found by ID and by email, but not by a search for active users', async () => {
    const { id, email } = await create()
    expect(await users.activeEmailExists(email)).toBe(true)
    await users.update(id, { is_active: 0 })
    expect(await users.activeEmailExists(email)).toBe(false)
    expect(await users.findPasswordRecord(email)).toMatchObject({ id, is_active: 0 })
    expect(await users.findById(id)).toMatchObject({ email, is_active: 0 })
    expect(await users.findByEmail(email)).toMatchObject({ id, is_active: 0 })
  })

  it('no returned user contains the hash of a password', async () => {
    const { id, email } = await create()
    const answers = [
      await users.findById(id),
      await users.findByEmail(email),
      await users.update(id, { plan: 'pro' }),
      ...(await createUserDirectory(database).page({}, undefined, 1000)).users,
    ]
    for (const user of answers) expect(user).not.toHaveProperty('password_hash')
  })

  it('a change of plan also changes the subscription; other changes do not', async () => {
    const { id } = await create()
    expect(await users.update(id, { plan: 'premium' })).toMatchObject({ plan: 'premium', is_active: 1 })
    expect(await subscribedPlan(id)).toBe('premium')
    expect(await users.update(id, { is_active: 0 })).toMatchObject({ plan: 'premium', is_active: 0 })
    expect(await subscribedPlan(id)).toBe('premium')
    expect(await users.update(id, { plan: 'pro', is_active: 1 })).toMatchObject({ plan: 'pro', is_active: 1 })
    expect(await subscribedPlan(id)).toBe('pro')
  })

  it('a change of plan creates a missing subscription', async () => {
    const { id } = await create()
    await database.query('delete from subscriptions where user_id = $1', [id])
    await users.update(id, { plan: 'premium' })
    expect(await subscribedPlan(id)).toBe('premium')
  })

  it('a change to a user that does not exist has no effect, and returns undefined or false', async () => {
    const nobody = 9007199254740991
    expect(await users.findById(nobody)).toBeUndefined()
    expect(await users.update(nobody, { plan: 'pro' })).toBeUndefined()
    expect(await users.setPassword(nobody, 'a hash')).toBe(false)
    expect(await users.resetUsage(nobody)).toBeUndefined()
    expect(await users.delete(nobody)).toBe(false)
    expect(await subscribedPlan(nobody)).toBeUndefined()
  })

  it('a usage reset sets the user’s uses of the day to 0', async () => {
    const { id } = await create()
    await database.query("update users set daily_usage = 3, last_usage_date = '2026-02-03' where id = $1", [
      id,
    ])
    expect(await users.findById(id)).toMatchObject({ daily_usage: 3, last_usage_date: '2026-02-03' })
    expect(await users.resetUsage(id)).toMatchObject({ id, daily_usage: 0 })
    expect(await users.findById(id)).toMatchObject({ daily_usage: 0, last_usage_date: null })
  })

  describe('the sessions of a user', () => {
    it('end when the user gets a new password, while the sessions of other users stay open', async () => {
      const room = await openRoom(database)
      const id = await room.register('sessions1@example.com')
      await room.register('sessions2@example.com')
      const login = (email: string) => room.accounts.login({ email, password: 'un mot de passe' })
      const mine = [await login('sessions1@example.com'), await login('sessions1@example.com')]
      const other = await login('sessions2@example.com')
      expect(await users.setPassword(id, 'a hash')).toBe(true)
      for (const { refresh_token } of mine) {
        expect(await outcome(room.sessions.refresh(refresh_token))).toBe('refresh_token_inactive')
      }
      expect(await room.activeSessions(id)).toEqual([])
      expect(await outcome(room.sessions.refresh(other.refresh_token))).toBe('ok')
      expect((await users.findPasswordRecord('sessions1@example.com'))?.password_hash).toBe('a hash')
    })

    it('are deleted together with the user, and the subscription is deleted too', async () => {
      const room = await openRoom(database)
      const id = await room.register('deleted@example.com')
      const { refresh_token } = await room.accounts.login({
        email: 'deleted@example.com',
        password: 'un mot de passe',
      })
      expect(await users.delete(id)).toBe(true)
      expect(await outcome(room.sessions.refresh(refresh_token))).toBe('refresh_token_inactive')
      for (const table of ['subscriptions', 'refresh_tokens']) {
        expect(await database.query(`select 1 from ${table} where user_id = $1`, [id])).toEqual([])
      }
    })
  })
})
