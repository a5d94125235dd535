// Tests that a user has at most one active API key, even with concurrent replacements, revocations and deletions.

import { createHash } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createSessionStore } from '../../../src/accounts/session-store.ts'
import { apiTokenIdOf } from '../../../src/identity/api-keys/api-key-store.ts'
import { Refusal } from '../../../src/refusals/refusal.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres/postgres.ts'
import { createUserStore } from '../../../src/users/user-store.ts'
import { type ApiKeyStores, openApiKeys } from '../../support/api-keys.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'
import { signIn, storedToken } from '../../support/sessions.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { addUser } from '../../support/users.ts'

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')
const now = new Date('2026-02-03T04:05:06.789Z')

interface KeyRow {
  id: number
  token_hash: string
  revoked: 0 | 1
  created_at: Date
  last_used_at: Date | null
}

function keysOf(database: Database, userId: number): Promise<KeyRow[]> {
  return database.query<KeyRow>(
    `select id, token_hash, revoked, created_at, last_used_at from api_tokens where user_id = $1 order by id`,
    [userId],
  )
}

describeOverSetups('the replacement of an API key', ({ openDatabase: open }) => {
  let database: Database
  let store: ApiKeyStores
  let id: number

  beforeAll(async () => {
    database = await open()
    store = openApiKeys(database)
  })
  beforeEach(async () => {
    id = await addUser(database)
  })
  afterAll(() => database.close())

  it('activates the new key and revokes the old key, and keeps both records', async () => {
    expect(await store.replace(id, hashOf('first'), now)).toEqual({ created_at: now })
    const first = await store.findActive(hashOf('first'))
    await store.recordUse(first?.id ?? '', now)
    const later = new Date(now.getTime() + 1)
    expect(await store.replace(id, hashOf('second'), later)).toEqual({ created_at: later })
    expect(await store.findActive(hashOf('first'))).toBeUndefined()
    expect((await store.findActive(hashOf('second')))?.userId).toBe(id)
    expect(await keysOf(database, id)).toEqual([
      {
        id: apiTokenIdOf(first?.id ?? ''),
        token_hash: hashOf('first'),
        revoked: 1,
        created_at: now,
        last_used_at: now,
      },
      {
        id: expect.any(Number),
        token_hash: hashOf('second'),
        revoked: 0,
        created_at: later,
        last_used_at: null,
      },
    ])
  })

  it('does not affect another user', async () => {
    const other = await addUser(database)
    await store.replace(other, hashOf('theirs'), now)
    await store.replace(id, hashOf('mine'), now)
    await store.revokeApiToken(id)
    expect((await store.findActive(hashOf('theirs')))?.userId).toBe(other)
  })

  it('leaves exactly one active key, even after 50 simultaneous replacements that all succeed', async () => {
    const hashes = Array.from({ length: 50 }, (_, i) => hashOf(`${id} of many ${i}`))
    // Each store simulates one replica. The stores share no memory, so only the database can serialize the
    // replacements.
    const stores = Array.from({ length: 10 }, () => openApiKeys(database))
    const answers = await Promise.all(
      hashes.map((hash, i) => (stores[i % 10] as ApiKeyStores).replace(id, hash, now)),
    )
    expect(answers).toEqual(hashes.map(() => ({ created_at: now })))
    const keys = await keysOf(database, id)
    expect(keys.map(key => key.token_hash).sort()).toEqual([...hashes].sort())
    // The records are in the order of the replacements. Each replacement revoked the previous key.
    expect(keys.map(key => key.revoked)).toEqual([...hashes.slice(1).map(() => 1), 0])
  })

  it('if it is refused, does not affect the next replacement', async () => {
    const refused = store.replace(id, hashOf(`${id} refused`), now, async () => {
      throw new Refusal('token_invalid', { reason: 'session_ended' })
    })
    const next = store.replace(id, hashOf(`${id} next`), now)
    await expect(refused).rejects.toThrow(Refusal)
    expect(await next).toEqual({ created_at: now })
    expect(await keysOf(database, id)).toMatchObject([{ token_hash: hashOf(`${id} next`), revoked: 0 }])
  })

  it('changes nothing if the user is deleted or inactive', async () => {
    expect(await store.replace(9007199254740991, hashOf('nobody'), now)).toBe('user_gone')
    await store.replace(id, hashOf('kept'), now)
    await createUserStore(database).update(id, { is_active: 0 })
    expect(await store.replace(id, hashOf('lost'), now)).toBe('user_gone')
    expect(await keysOf(database, id)).toMatchObject([{ token_hash: hashOf('kept'), revoked: 0 }])
  })

  it('succeeds for a user who has just lost the plan `pro`, because the store does not check the plan', async () => {
    await createUserStore(database).update(id, { plan: 'free' })
    expect(await store.replace(id, hashOf(`${id} fallen`), now)).toEqual({ created_at: now })
  })

  it('causes no error while the user is being deleted, and a deleted user has no keys', async () => {
    const users = createUserStore(database)
    for (let round = 0; round < 10; round += 1) {
      const gone = await addUser(database)
      await store.replace(gone, hashOf(`${gone} before`), now)
      const [deleted, ...answers] = await Promise.all([
        users.delete(gone),
        ...Array.from({ length: 5 }, (_, i) => store.replace(gone, hashOf(`${gone} beside ${i}`), now)),
      ])
      expect(deleted).toBe(true)
      for (const answer of answers) expect([{ created_at: now }, 'user_gone']).toContainEqual(answer)
      expect(await keysOf(database, gone)).toEqual([])
    }
  })

  it('can run together with revocations, uses, plan changes and logins without a deadlock', async () => {
    const users = createUserStore(database)
    const sessions = createSessionStore(database)
    await store.replace(id, hashOf(`${id} start`), now)
    const keyId = (await store.findActive(hashOf(`${id} start`)))?.id ?? ''
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => [
        store.replace(id, hashOf(`${id} crowd ${i}`), now),
        store.revokeApiToken(id),
        store.recordUse(keyId, new Date(now.getTime() + i)),
        users.update(id, { plan: 'pro' }),
        sessions.revokeAll(id),
        sessions.create(id, 0, storedToken(hashOf(`${id} session ${i}`), now), signIn()),
      ]).flat(),
    )
    expect((await keysOf(database, id)).filter(key => key.revoked === 0).length).toBeLessThanOrEqual(1)
  })

  it('creates a key that can be revoked; a revocation without an active key succeeds and changes nothing', async () => {
    await store.revokeApiToken(id)
    await store.replace(id, hashOf(`${id} to revoke`), now)
    await store.revokeApiToken(id)
    expect(await store.findActive(hashOf(`${id} to revoke`))).toBeUndefined()
    await store.revokeApiToken(id)
    expect(await keysOf(database, id)).toMatchObject([{ revoked: 1 }])
  })
})

describeWithServices('a user whose row is locked by another transaction', () => {
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  let holder: Client
  let id: number

  beforeAll(async () => {
    database = await postgresDatabase()
    id = await addUser(database)
    holder = new Client({ connectionString: database.url })
    await holder.connect()
  })
  afterAll(async () => {
    await holder.end()
    await database.close()
  })

  it('occupies only one connection, even if 20 replacements of the API key wait for the lock', async () => {
    const small = openPostgres({ url: database.url, maxConnections: 2, onError: () => {} })
    const store = openApiKeys(small)
    await holder.query('begin')
    await holder.query('select 1 from users where id = $1 for update', [id])
    const waiting = Promise.all(
      Array.from({ length: 20 }, (_, i) => store.replace(id, hashOf(`waiting ${i}`), now)),
    )
    try {
      for (let i = 0; i < 3; i += 1) await store.findActive(hashOf('somebody else’s'))
    } finally {
      await holder.query('commit')
      await waiting
      await small.close()
    }
    expect((await keysOf(database, id)).filter(key => key.revoked === 0)).toHaveLength(1)
  })

  it('can log in without waiting for the replacement that holds the lock', async () => {
    await holder.query('begin')
    await holder.query('select id from users where id = $1 and is_active = 1 for no key update', [id])
    try {
      const opened = createSessionStore(database).create(id, 0, storedToken(hashOf('login'), now), signIn())
      expect(await opened).toMatchObject({ plan: 'free' })
    } finally {
      await holder.query('rollback')
    }
  })

  it('makes all waiting replacements fail together when the first of them times out', async () => {
    const store = openApiKeys(database)
    await holder.query('begin')
    await holder.query('select 1 from users where id = $1 for update', [id])
    const begun = performance.now()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => store.replace(id, hashOf(`failing ${i}`), now)),
    )
    await holder.query('rollback')
    expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'rejected'))
    expect(performance.now() - begun).toBeLessThan(2_000)
    expect(await store.replace(id, hashOf('afterwards'), now)).toEqual({ created_at: now })
  })
})
