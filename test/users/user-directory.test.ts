// Lists of users are complete and sorted, and the database reads each page with an index.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createUserDirectory, type UserDirectory, type UserQuery } from '../../src/users/user-directory.ts'
import { describeOverSetups } from '../support/setups.ts'

const emails = [
  'ada@example.com',
  'ada.b@example.com',
  'adb@example.com',
  'a_a@example.com',
  'a%a@example.com',
  'é@example.com',
  'z@example.com',
  '12@example.com',
  '123@example.com',
  '\u{10ffff}\u{10ffff}@example.com',
  '\ud7ff@example.com',
]

describeOverSetups('the directory of users', ({ openDatabase: open }) => {
  let database: Database
  let directory: UserDirectory
  const ids = new Map<string, number>()

  beforeAll(async () => {
    database = await open()
    directory = createUserDirectory(database)
    for (const email of emails) {
      const [row] = await database.query<{ id: number }>(
        "insert into users (email, password_hash) values ($1, 'x') returning id",
        [email],
      )
      ids.set(email, row?.id ?? 0)
    }
  })
  afterAll(() => database?.close())

  async function all(query: UserQuery, limit: number): Promise<string[]> {
    const found: string[] = []
    for (let after: string | number | undefined; ; ) {
      const { users, hasMore } = await directory.page(query, after, limit)
      found.push(...users.map(({ email }) => email))
      const last = users.at(-1)
      if (!hasMore || last === undefined) return found
      expect(users).toHaveLength(limit)
      after = query.prefix === undefined ? last.id : last.email
    }
  }

  const byBytes = (list: string[]) => list.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

  it.each(['a', 'ada', 'ada@', 'a_', 'a%', '12', 'é', 'z', '\ud7ff', '\u{10ffff}', 'nobody'])(
    'returns every email that starts with "%s" once, in byte order, for any page size',
    async prefix => {
      const expected = byBytes(emails.filter(email => email.startsWith(prefix)))
      for (const limit of [1, 2, 50]) expect(await all({ prefix }, limit)).toEqual(expected)
    },
  )

  it('searches for a number at the start of emails and among IDs, and returns each user once', async () => {
    const id = ids.get('z@example.com') ?? 0
    expect(await all({ prefix: '12', id }, 1)).toEqual(['123@example.com', '12@example.com', 'z@example.com'])
    expect(await all({ prefix: '12', id: ids.get('12@example.com') }, 50)).toHaveLength(2)
  })

  it('returns all users in the order of their IDs, even if a user is deleted between two pages', async () => {
    expect(await all({}, 3)).toEqual(emails)
    const { users } = await directory.page({}, undefined, 2)
    await database.query('delete from users where id = $1', [users[1]?.id])
    const after = users[1]?.id
    expect((await directory.page({}, after, 1)).users[0]?.email).toBe(emails[2])
  })

  it('filters users by plan and by whether they are active', async () => {
    const id = ids.get('z@example.com') ?? 0
    await database.query("update users set plan = 'pro', is_active = 0 where id = $1", [id])
    expect(await all({ plan: 'pro' }, 5)).toEqual(['z@example.com'])
    expect(await all({ prefix: 'z', isActive: 1 }, 5)).toEqual([])
    expect(await all({ prefix: 'z', isActive: 0, plan: 'pro' }, 5)).toEqual(['z@example.com'])
    expect(await all({ prefix: 'nobody', id, isActive: 1 }, 5)).toEqual([])
    expect(await all({ email: 'z@example.com', plan: 'free' }, 5)).toEqual([])
  })

  it('uses an index to read a page if there are many users', async () => {
    await database.query(
      "insert into users (email, password_hash) select 'many' || n || '@example.com', 'x' from generate_series(1, 5000) n",
    )
    await database.query('analyze users')
    const plan = await database.query<{ 'QUERY PLAN': string }>(
      `explain select id from users u where u.email collate "C" >= 'many42' and u.email collate "C" < 'many43'
        order by u.email collate "C" limit 51`,
    )
    expect(plan.map(row => row['QUERY PLAN']).join('\n')).toContain('users_by_email_bytes')
  })
})
