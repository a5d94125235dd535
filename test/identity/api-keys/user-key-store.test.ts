// Tests how long the store keeps revoked and expired API keys, and how many keys it lists.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../../src/storage/database.ts'
import { type ApiKeyStores, openApiKeys } from '../../support/api-keys.ts'
import { describeOnBothSetups } from '../../support/setups.ts'
import { addUser } from '../../support/users.ts'

const now = new Date('2026-03-31T12:00:00Z')
const dayMs = 24 * 60 * 60_000
const daysAgo = (days: number, ms = 0) => new Date(now.getTime() - days * dayMs + ms)

describeOnBothSetups('the store of API keys', ({ openDatabase }) => {
  let database: Database
  let store: ApiKeyStores
  beforeAll(async () => {
    database = await openDatabase()
    store = openApiKeys(database)
  })
  afterAll(() => database?.close())

  const insert = (userId: number, name: string, revoked: Date | null, expires: Date | null) =>
    database.query(
      `insert into api_keys (user_id, token_hash, name, prefix, revoked_at, expires_at)
       values ($1, $2, $3, 'peage_123456', $4, $5)`,
      [userId, `${userId} ${name}`, name, revoked, expires],
    )
  const namesOf = async (userId: number) => (await store.listNewest(userId)).map(({ name }) => name).sort()

  it('deletes keys that were revoked or expired more than 30 days ago, and no other keys', async () => {
    const id = await addUser(database)
    await insert(id, 'revoked, deleted', daysAgo(30, -1), null)
    await insert(id, 'expired, deleted', null, daysAgo(30, -1))
    await insert(id, 'expired after the revocation, deleted', daysAgo(31), daysAgo(1))
    await insert(id, 'revoked after the expiry, deleted', daysAgo(1), daysAgo(31))
    await insert(id, 'revoked, kept', daysAgo(30), daysAgo(-1))
    await insert(id, 'expired, kept', null, daysAgo(30))
    await insert(id, 'live, kept', null, daysAgo(-1))
    await insert(id, 'without an expiry, kept', null, null)
    expect(await store.prune(now, 3)).toBe(3)
    expect(await store.prune(now, 3)).toBe(1)
    expect(await store.prune(now, 3)).toBe(0)
    expect(await namesOf(id)).toEqual([
      'expired, kept',
      'live, kept',
      'revoked, kept',
      'without an expiry, kept',
    ])
  })

  it('deletes each key once if two replicas prune at the same time', async () => {
    const id = await addUser(database)
    for (let i = 0; i < 5; i += 1) await insert(id, `old ${i}`, null, daysAgo(31))
    const counts = await Promise.all([store.prune(now, 10), store.prune(now, 10)])
    expect(counts.reduce((sum, count) => sum + count)).toBe(5)
  })

  it('lists the 100 newest keys of a user, newest first', async () => {
    const [id, other] = [await addUser(database), await addUser(database)]
    await database.query(
      `insert into api_keys (user_id, token_hash, name, prefix, created_at, revoked_at)
       select u, u || ' many ' || n, n::text, 'peage_123456', timestamptz '2026-01-01' + n * interval '1 minute',
              case when n % 2 = 0 then now() end
         from generate_series(1, 120) n, unnest(array[$1, $2]::bigint[]) u`,
      [id, other],
    )
    const listed = await store.listNewest(id)
    expect(listed.map(({ name }) => Number(name))).toEqual(Array.from({ length: 100 }, (_, i) => 120 - i))
    expect(listed.filter(({ revoked_at }) => revoked_at === null)).toHaveLength(50)
  })
})
