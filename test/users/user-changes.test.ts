// Every change to a user is recorded exactly once, in the transaction of the change and in the order of the changes.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import type { UserChange } from '../../src/users/user-change.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('the recorded changes to users', ({ openDatabase: open }) => {
  let database: Database
  beforeAll(async () => {
    database = await open()
    await database.query(
      'create table recorded (id bigint generated always as identity, user_id bigint, type text, plan text)',
    )
  })
  afterAll(() => database.close())

  let count = 0
  async function openUser() {
    const changes: UserChange[] = []
    const users = createUserStore(database, async (_tx, recorded) => void changes.push(...recorded))
    count += 1
    const email = `changes${count}@example.com`
    const created = await users.create(email, 'a hash')
    if (created.outcome !== 'created') throw new Error('not created')
    return { users, changes, email, id: created.id, types: () => changes.map(({ type }) => type) }
  }

  it('a new user is recorded once; if the email is in use, nothing is recorded', async () => {
    const { users, changes, email, id } = await openUser()
    expect(await users.create(email, 'another hash')).toEqual({ outcome: 'email_in_use' })
    expect(changes).toEqual([{ type: 'user.created', user: await users.findById(id) }])
  })

  it('each changed field is recorded together with the new state of the user, and an unchanged field is not recorded', async () => {
    const { users, changes, id } = await openUser()
    changes.length = 0
    await users.update(id, { plan: 'free', is_active: 1, email_verified: false })
    expect(changes).toEqual([])
    const user = await users.update(id, { plan: 'pro', is_active: 0, email_verified: true })
    expect(changes).toEqual([
      { type: 'user.email_verified', user },
      { type: 'user.plan_changed', user },
      { type: 'user.deactivated', user },
    ])
    changes.length = 0
    const again = await users.update(id, { plan: 'pro', is_active: 1, email_verified: true })
    expect(changes).toEqual([{ type: 'user.activated', user: again }])
    await users.update(id, { email_verified: false })
    expect(changes).toHaveLength(1)
  })

  it('a changed password and a deletion are recorded; the record of a deletion contains the deleted user', async () => {
    const { users, changes, id, types } = await openUser()
    changes.length = 0
    await users.setPassword(id, 'another hash')
    const before = await users.findById(id)
    expect(await users.delete(id)).toBe(true)
    expect(changes).toEqual([
      { type: 'user.password_changed', user: before },
      { type: 'user.deleted', user: before },
    ])
    expect(await users.delete(id)).toBe(false)
    expect(await users.setPassword(id, 'a hash')).toBe(false)
    expect(await users.update(id, { plan: 'pro' })).toBeUndefined()
    expect(types()).toHaveLength(2)
  })

  it('a change is rolled back if it cannot be recorded', async () => {
    const { id, email } = await openUser()
    const failing = createUserStore(database, async () => {
      throw new Error('not recorded')
    })
    const plain = createUserStore(database)
    const before = await plain.findPasswordRecord(email)
    await expect(failing.create('never@example.com', 'a hash')).rejects.toThrow('not recorded')
    await expect(failing.update(id, { plan: 'pro' })).rejects.toThrow('not recorded')
    await expect(failing.setPassword(id, 'another hash')).rejects.toThrow('not recorded')
    await expect(failing.delete(id)).rejects.toThrow('not recorded')
    expect(await plain.findById(id)).toMatchObject({ plan: 'free' })
    expect(await plain.findPasswordRecord(email)).toEqual(before)
    expect(await plain.findByEmail('never@example.com')).toBeUndefined()
  })

  it('each change to a user is recorded once, in the order of the commits', async () => {
    const { id } = await openUser()
    const users = createUserStore(database, async (tx, changes) => {
      for (const { type, user } of changes)
        await tx.query('insert into recorded (user_id, type, plan) values ($1, $2, $3)', [
          user.id,
          type,
          user.plan,
        ])
    })
    const plans = ['free', 'premium', 'pro'] as const
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => users.update(id, { plan: plans[i % 3] ?? 'free' })),
    )
    const recorded = await database.query<{ plan: string }>(
      'select plan from recorded where user_id = $1 order by id',
      [id],
    )
    const told = ['free', ...recorded.map(({ plan }) => plan)]
    expect(told.slice(1).filter((plan, at) => plan === told[at])).toEqual([])
    expect(told.at(-1)).toBe((await users.findById(id))?.plan)
  })
})
