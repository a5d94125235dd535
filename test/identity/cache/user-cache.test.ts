// Tests, with real stores, how the cache reads users and API keys, and how changes invalidate the cached records.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createUserCache, type UserCache } from '../../../src/identity/cache/user-cache.ts'
import type { Database } from '../../../src/storage/database.ts'
import { createUserStore } from '../../../src/users/user-store.ts'
import { openApiKeys } from '../../support/api-keys.ts'
import { type HandFeed, handFeed } from '../../support/hand-feed.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { addUser } from '../../support/users.ts'

describeOverSetups('cached users', ({ openDatabase: open }) => {
  let database: Database
  let feed: HandFeed
  let known: UserCache
  let statements: number
  let id: number

  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    feed = handFeed()
    known = create()
    statements = 0
    id = await addUser(database, { plan: 'pro' })
    await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [id, `hash${id}`])
  })

  function create(maxUsers = 100): UserCache {
    const counting: Database = {
      ...database,
      query(sql, values) {
        statements += 1
        return database.query(sql, values)
      },
    }
    return createUserCache({
      users: createUserStore(counting),
      apiKeys: openApiKeys(counting),
      feed,
      maxUsers,
      results: { hit: 0, miss: 0, bypass: 0 },
    })
  }

  const change = (sql: string) => database.query(`update users set ${sql} where id = $1`, [id])

  it('need only two SQL statements for 100 concurrent requests with one API key, and are then found synchronously', async () => {
    const found = await Promise.all(Array.from({ length: 100 }, () => known.findOwner(`hash${id}`)))
    expect(new Set(found.map(owner => owner?.user.id))).toEqual(new Set([id]))
    expect(statements).toBe(2)
    expect(known.findOwner(`hash${id}`)).toMatchObject({ user: { id }, apiKey: { userId: id } })
  })

  it('stay the same for access tokens and for API keys until a notification about a change arrives', async () => {
    await known.find(id)
    await known.findOwner(`hash${id}`)
    await change("plan = 'free'")
    expect(known.find(id)).toMatchObject({ plan: 'pro' })
    feed.tell(`user ${id}`)
    expect(await known.findOwner(`hash${id}`)).toMatchObject({ user: { plan: 'free' } })
    expect(known.find(id)).toMatchObject({ plan: 'free' })
  })

  it('are not found while they are inactive, and are not read again until they change', async () => {
    await change('is_active = 0')
    expect(await known.find(id)).toBeUndefined()
    const before = statements
    expect(known.find(id)).toBeUndefined()
    expect(statements).toBe(before)
    await change('is_active = 1')
    feed.tell(`user ${id}`)
    expect(await known.find(id)).toMatchObject({ id })
  })

  it('are read for every request until they exist, because an insertion causes no notification', async () => {
    const free = id + 1_000_000
    expect(await known.find(free)).toBeUndefined()
    await database.query(
      `insert into users (id, email, password_hash) overriding system value values ($1, $2, 'none')`,
      [free, `${free}@example.com`],
    )
    expect(await known.find(free)).toMatchObject({ id: free })
  })

  it('have one limit for their cached API keys, which counts named keys and the key `api-token`', async () => {
    await database.query(
      "insert into api_keys (user_id, token_hash, name, prefix) values ($1, $2, 'n', 'p')",
      [id, `named${id}`],
    )
    const bounded = create(1)
    await bounded.findOwner(`hash${id}`)
    await bounded.findOwner(`named${id}`)
    expect(bounded.findOwner(`named${id}`)).toMatchObject({ apiKey: { isApiToken: false } })
    expect(bounded.lastKnownKey(`hash${id}`)).toBeUndefined()
  })

  it('keep the last known API key while the feed is not trusted; the first use of the cache after that drops the key', async () => {
    await known.findOwner(`hash${id}`)
    feed.trust(false)
    expect(known.lastKnownKey(`hash${id}`)).toMatchObject({ userId: id, isApiToken: true })
    feed.trust(true)
    await known.findOwner('another hash')
    expect(known.lastKnownKey(`hash${id}`)).toBeUndefined()
  })

  it('lose a revoked API key, and get a new API key, when a notification about the key arrives', async () => {
    await known.findOwner(`hash${id}`)
    await database.query('update api_tokens set revoked = 1 where user_id = $1', [id])
    feed.tell(`key hash${id}`)
    expect(await known.findOwner(`hash${id}`)).toBeUndefined()
    const before = statements
    expect(known.findOwner(`hash${id}`)).toBeUndefined()
    expect(statements).toBe(before)
    expect(await known.findOwner(`next${id}`)).toBeUndefined()
    await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [id, `next${id}`])
    feed.tell(`key next${id}`)
    expect(await known.findOwner(`next${id}`)).toMatchObject({ user: { id } })
  })

  it('are read for every request while the feed is not trusted, and once more when the feed is trusted again', async () => {
    await known.findOwner(`hash${id}`)
    await change("plan = 'free'")
    feed.trust(false)
    statements = 0
    for (let request = 0; request < 3; request += 1) {
      expect(await known.find(id)).toMatchObject({ plan: 'free' })
      expect(await known.findOwner(`hash${id}`)).toMatchObject({ user: { plan: 'free' } })
    }
    expect(statements).toBe(9)
    await change("plan = 'premium'")
    feed.trust(true)
    expect(await known.find(id)).toMatchObject({ plan: 'premium' })
  })

  it('ignore notifications that are malformed or do not refer to users or API keys', async () => {
    await known.find(id)
    for (const change of ['', 'user', 'user x', 'user 1 2', 'something else', `key ${'x'.repeat(7_000)}`]) {
      feed.tell(change)
    }
    expect(known.find(id)).toMatchObject({ id })
  })
})
