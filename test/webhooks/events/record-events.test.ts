// Checks the content of events, and which changes create an event.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { EventsConfig } from '../../../src/config/sections/schema.ts'
import type { Database } from '../../../src/storage/database.ts'
import type { User } from '../../../src/users/user.ts'
import type { UserChange } from '../../../src/users/user-change.ts'
import { createEventRecorder } from '../../../src/webhooks/events/record-events.ts'
import { lendDatabase } from '../../support/lent-database.ts'

const now = Date.parse('2026-02-03T04:05:06.789Z')
const user: User = {
  id: 7,
  email: 'ada@example.com',
  plan: 'pro',
  is_active: 1,
  daily_usage: 3,
  last_usage_date: '2026-02-03',
  created_at: new Date(0),
  email_verified_at: null,
}
const data = { user_id: 7, email: 'ada@example.com', plan: 'pro', is_active: 1 }
const settings = (types: EventsConfig['types']): EventsConfig => ({ url: 'http://a', secret: '', types })

let database: Database
beforeAll(async () => {
  database = await lendDatabase()
})
beforeEach(() => database.query('delete from events').then(() => {}))
afterAll(() => database.close())

const clock = { now: () => now }
const bodies = async () =>
  (await database.query<{ body: string }>('select body from events order by id')).map(({ body }) =>
    JSON.parse(body),
  )
const changes: UserChange[] = [
  { type: 'user.email_changed', user, previousEmail: 'before@example.com' },
  { type: 'user.email_verified', user },
  { type: 'user.password_changed', user },
  { type: 'user.identity_linked', user },
  { type: 'user.identity_removed', user },
]

it('an event contains its type, the time and four user fields; an email change also contains the previous email', async () => {
  const types = settings(['user.email_changed', 'user.email_verified'])
  const record = createEventRecorder(() => types, clock)
  await database.transaction(tx => record(tx, changes))
  const timestamp = '2026-02-03T04:05:06.789Z'
  expect(await bodies()).toEqual([
    { type: 'user.email_changed', timestamp, data: { ...data, previous_email: 'before@example.com' } },
    { type: 'user.email_verified', timestamp, data },
  ])
})

it('an event is recorded only if its type is configured; for other types, no SQL statement runs', async () => {
  let current: ReturnType<typeof settings> | undefined
  const record = createEventRecorder(() => current, clock)
  const unused = { query: () => Promise.reject(new Error('a statement')) }
  await record(unused, changes)
  current = settings(['user.deleted'])
  await record(unused, changes)
  current = settings(['user.email_verified'])
  await database.transaction(tx => record(tx, changes))
  expect(await bodies()).toMatchObject([{ type: 'user.email_verified' }])
  current = undefined
  await record(unused, changes)
})
