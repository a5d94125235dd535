// A notice about an account change is stored in the same transaction as the change, with the correct address.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createMailQueue } from '../../src/mail/mail-queue.ts'
import { createNoticeRecorder } from '../../src/mail/notices.ts'
import type { Database } from '../../src/storage/database.ts'
import type { User } from '../../src/users/user.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { lendDatabase } from '../support/lent-database.ts'

let database: Database
let id: number
let settings: { notices: boolean } | undefined
const record = createNoticeRecorder(() => settings, createMailQueue({ now: Date.now }))
const mails = () =>
  database.query<{ kind: string; address: string; user_id: number }>(
    'select kind, address, user_id from mails order by id',
  )

beforeAll(async () => {
  database = await lendDatabase()
})
beforeEach(async () => {
  settings = { notices: true }
  for (const table of ['mails', 'users']) await database.query(`delete from ${table}`)
  const created = await users().create('ada@example.com', 'x')
  id = created.outcome === 'created' ? created.id : 0
})
afterAll(() => database.close())

const users = () => createUserStore(database, record)

it('a password change and a deletion each store a notice, and both notices remain after the user is deleted', async () => {
  await users().setPassword(id, 'y')
  await users().update(id, { plan: 'pro' })
  expect(await mails()).toEqual([{ kind: 'password_changed', address: 'ada@example.com', user_id: id }])
  await users().delete(id)
  expect((await mails()).map(({ kind, address }) => [kind, address])).toEqual([
    ['password_changed', 'ada@example.com'],
    ['account_deleted', 'ada@example.com'],
  ])
})

it('an email change stores one notice, addressed to the previous email', async () => {
  const user = (await users().findById(id)) as User
  await database.transaction(tx =>
    record(tx, [
      {
        type: 'user.email_changed',
        user: { ...user, email: 'new@example.com' },
        previousEmail: 'ada@example.com',
      },
    ]),
  )
  expect(await mails()).toEqual([{ kind: 'email_changed', address: 'ada@example.com', user_id: id }])
})

it('no notice is stored if the user is inactive, notices are off or the change is rolled back', async () => {
  await users().update(id, { is_active: 0 })
  await users().setPassword(id, 'y')
  await users().update(id, { is_active: 1 })
  for (const off of [{ notices: false }, undefined]) {
    settings = off
    await users().setPassword(id, 'z')
  }
  settings = { notices: true }
  const user = (await users().findById(id)) as User
  await database
    .transaction(async tx => {
      await record(tx, [{ type: 'user.password_changed', user }])
      throw new Error('undone')
    })
    .catch(() => {})
  expect(await mails()).toEqual([])
})

it('linking and removing an identity each store a notice, addressed to the email of the account', async () => {
  const user = (await users().findById(id)) as User
  await database.transaction(tx =>
    record(tx, [
      { type: 'user.identity_linked', user },
      { type: 'user.identity_removed', user },
    ]),
  )
  expect(await mails()).toEqual(
    ['identity_linked', 'identity_removed'].map(kind => ({ kind, address: 'ada@example.com', user_id: id })),
  )
})
