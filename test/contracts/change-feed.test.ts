// Tests on both databases that changes to users, keys and sessions are reported, even if another program makes them.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSessionStore, type SessionStore } from '../../src/accounts/session-store.ts'
import { createKeyStore } from '../../src/identity/keys/key-store.ts'
import type { ChangeFeed } from '../../src/storage/change-feed.ts'
import type { Database } from '../../src/storage/database.ts'
import { createUsageStore } from '../../src/usage/usage-store.ts'
import { openApiKeys } from '../support/api-keys.ts'
import { openFeed } from '../support/feed.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

describeOnBothSetups('the change feed', ({ openDatabase: open }) => {
  let database: Database
  let feed: ChangeFeed
  const heard: string[] = []
  const states: string[] = []
  let gaps = 0
  let id: number

  beforeAll(async () => {
    database = await open()
    feed = startFeed()
    feed.subscribe(
      change => heard.push(change),
      () => {
        gaps += 1
      },
    )
    await vi.waitUntil(() => feed.isFresh(), { timeout: 2_000, interval: 10 })
  })
  afterAll(async () => {
    await feed?.close()
    await database?.close()
  })
  beforeEach(async () => {
    id = await addUser(database)
  })

  const startFeed = () => openFeed(database, state => states.push(state))

  /** Returns all notifications that `work` causes. */
  async function heardOf(work: () => Promise<unknown>): Promise<string[]> {
    await feed.catchUp()
    heard.length = 0
    await work()
    await feed.catchUp()
    return heard.toSorted()
  }

  const set = (assignments: string) => () =>
    database.query(`update users set ${assignments} where id = $1`, [id])
  const insertKey = (hash: string, revoked = 0) =>
    database.query('insert into api_tokens (user_id, token_hash, revoked) values ($1, $2, $3)', [
      id,
      hash,
      revoked,
    ])
  const onKey = (assignments: string, hash: string) => () =>
    database.query(`update api_tokens set ${assignments} where token_hash = $1`, [hash])

  describe('for changes of a user', () => {
    it.each([
      ["email = 'another@example.com'"],
      ["plan = 'pro'"],
      ['is_active = 0'],
      ["is_active = 0, plan = 'premium', password_hash = 'other'"],
      ['session_epoch = 1'],
    ])('reports %s once', async assignments => {
      expect(await heardOf(set(assignments))).toEqual([`user ${id}`])
      expect(await heardOf(set(assignments))).toEqual([])
    })

    it('reports an activation', async () => {
      await set('is_active = 0')()
      expect(await heardOf(set('is_active = 1'))).toEqual([`user ${id}`])
    })

    it.each([
      ['less on the same day', 'daily_usage = 1'],
      ['none on the same day', 'daily_usage = 0'],
      ['a reset', 'daily_usage = 0, last_usage_date = null'],
      ['no date', 'last_usage_date = null'],
      ['an earlier day', "last_usage_date = date '2096-02-27'"],
      ['more on an earlier day', "daily_usage = 9, last_usage_date = date '2096-02-27'"],
    ])('reports a decrease of the daily usage: %s', async (_, assignments) => {
      await set("daily_usage = 2, last_usage_date = date '2096-02-28'")()
      expect(await heardOf(set(assignments))).toEqual([`user ${id}`])
    })

    it('does not report a counted use, even if it is the first use of a day', async () => {
      const usage = createUsageStore(database)
      const uses = async () => {
        expect(await usage.count([id, id, id, id], '2096-02-28', 3)).toEqual([
          { counted: true, used: 1 },
          { counted: true, used: 2 },
          { counted: true, used: 3 },
          { counted: false, used: 3 },
        ])
        expect(await usage.count([id], '2096-02-29', 3)).toEqual([{ counted: true, used: 1 }])
      }
      expect(await heardOf(uses)).toEqual([])
    })

    it.each([
      ["password_hash = 'other'"],
      ['created_at = now()'],
      ['email = email, plan = plan, is_active = is_active'],
      ["daily_usage = 5, last_usage_date = date '2096-02-29'"],
    ])('does not report the change %s', async assignments => {
      await set("daily_usage = 2, last_usage_date = date '2096-02-28'")()
      expect(await heardOf(set(assignments))).toEqual([])
    })

    it('does not report an insertion', async () => {
      expect(await heardOf(() => addUser(database))).toEqual([])
    })

    it('reports the deletion of a user, and the deletion of the API keys of this user', async () => {
      await insertKey(`revoked ${id}`.replace(' ', ''), 1)
      await insertKey(`live${id}`)
      const changes = await heardOf(() => database.query('delete from users where id = $1', [id]))
      expect(changes.sort()).toEqual([`key live${id}`, `key revoked${id}`, `user ${id}`])
    })

    it('reports every user if one statement changes several users', async () => {
      const ids = [id, await addUser(database), await addUser(database)]
      const changes = await heardOf(() =>
        database.query("update users set plan = 'pro' where id = any($1)", [ids]),
      )
      expect(changes.sort()).toEqual(ids.map(each => `user ${each}`).sort())
    })

    it('does not report a change that was rolled back', async () => {
      const changes = await heardOf(() =>
        database
          .transaction(async tx => {
            await tx.query("update users set plan = 'pro' where id = $1", [id])
            throw new Error('back')
          })
          .catch(() => {}),
      )
      expect(changes).toEqual([])
    })
  })

  describe('for changes of an API key', () => {
    it('reports the insertion, revocation and deletion of a key', async () => {
      const hash = `hash${id}`
      expect(await heardOf(() => insertKey(hash))).toEqual([`key ${hash}`])
      expect(await heardOf(onKey('revoked = 1', hash))).toEqual([`key ${hash}`])
      expect(
        await heardOf(() => database.query('delete from api_tokens where token_hash = $1', [hash])),
      ).toEqual([`key ${hash}`])
    })

    it('reports both the old key and the new key if the new key replaces the old key', async () => {
      const store = openApiKeys(database)
      await store.replace(id, `first${id}`, new Date())
      const changes = await heardOf(() => store.replace(id, `second${id}`, new Date()))
      expect(changes.sort()).toEqual([`key first${id}`, `key second${id}`])
    })

    it('reports the old and the new hash if the hash changes, and reports a key if its user changes', async () => {
      await insertKey(`old${id}`)
      const changes = await heardOf(onKey(`token_hash = 'new${id}'`, `old${id}`))
      expect(changes.sort()).toEqual([`key new${id}`, `key old${id}`])
      const other = await addUser(database)
      expect(await heardOf(onKey(`user_id = ${other}`, `new${id}`))).toEqual([`key new${id}`])
    })

    it('does not report that the key was used', async () => {
      await insertKey(`used${id}`)
      const store = openApiKeys(database)
      const keyId = (await store.findActive(`used${id}`))?.id ?? ''
      expect(await heardOf(() => store.recordUse(keyId, new Date()))).toEqual([])
      expect(await heardOf(onKey('created_at = now()', `used${id}`))).toEqual([])
    })
  })

  describe('for changes of a record in api_keys', () => {
    const add = (hash: string, expiresAt = 'null') =>
      database.query(
        `insert into api_keys (user_id, token_hash, name, prefix, expires_at) values ($1, $2, 'n', 'p', ${expiresAt})`,
        [id, hash],
      )
    const set = (assignment: string, hash: string) => () =>
      database.query(`update api_keys set ${assignment} where token_hash = $1`, [hash])
    const remove = (hash: string) => () =>
      database.query('delete from api_keys where token_hash = $1', [hash])

    it('reports every change that can affect the check of a key', async () => {
      const hash = `named${id}`
      const other = await addUser(database)
      expect(await heardOf(() => add(hash))).toEqual([`key ${hash}`])
      for (const assignment of [
        "scopes = '{a}'",
        "expires_at = now() + interval '1 day'",
        'revoked_at = now()',
        'revoked_at = null',
        `user_id = ${other}`,
        'id = gen_random_uuid()',
      ])
        expect(await heardOf(set(assignment, hash)), assignment).toEqual([`key ${hash}`])
      const changes = await heardOf(set(`token_hash = 'renamed${id}'`, hash))
      expect(changes.sort()).toEqual([`key ${hash}`, `key renamed${id}`])
      expect(await heardOf(remove(`renamed${id}`))).toEqual([`key renamed${id}`])
    })

    it('does not report that a key was used or renamed, or that a revoked key was deleted', async () => {
      await add(`revoked${id}`)
      expect(await heardOf(set('last_used_at = now()', `revoked${id}`))).toEqual([])
      expect(await heardOf(set("name = 'another'", `revoked${id}`))).toEqual([])
      await heardOf(set('revoked_at = now()', `revoked${id}`))
      expect(await heardOf(remove(`revoked${id}`))).toEqual([])
    })
  })

  describe('for changes of a session', () => {
    const hour = 3_600_000
    let store: SessionStore
    beforeAll(() => {
      store = createSessionStore(database)
    })

    async function login(): Promise<{ hash: string; sid: string; change: string }> {
      const token = storedToken(randomUUID(), new Date(Date.now() + hour))
      await store.create(id, 0, token, signIn())
      return { hash: token.tokenHash, sid: token.sessionId, change: `session ${id} ${token.sessionId}` }
    }
    /** Changes the record with SQL, as a program other than the gateway can do. */
    const write = (assignments: string, hash: string) => () =>
      database.query(`update refresh_tokens set ${assignments} where token_hash = $1`, [hash])

    it('reports the end of the session exactly once, whatever ends the session', async () => {
      const [one, two, three, kept] = [await login(), await login(), await login(), await login()]
      expect(await heardOf(() => store.revoke([one.hash]))).toEqual([one.change])
      expect(await heardOf(() => store.revoke([one.hash]))).toEqual([])
      expect(await heardOf(() => store.end(id, two.sid))).toEqual([two.change])
      expect(await heardOf(() => store.endOthers(id, kept.sid, new Date()))).toEqual([three.change])
      expect(await heardOf(() => store.endOthers(id, undefined, new Date()))).toEqual([
        kept.change,
        `user ${id}`,
      ])
      const four = await login()
      expect(await heardOf(() => store.revokeAll(id))).toEqual([four.change, `user ${id}`])
    })

    it('does not report a rotation of the refresh token, and still reports the end of the session after a rotation', async () => {
      const { hash, sid, change } = await login()
      const successor = { ...storedToken(randomUUID(), new Date(Date.now() + hour)), sessionId: sid }
      const rotating = () => store.rotate({ userId: id, tokenHash: hash }, successor, new Date())
      expect(await heardOf(rotating)).toEqual([])
      expect(await heardOf(() => store.revoke([hash]))).toEqual([change])
    })

    it.each([
      'revoked = 1',
      "expires_at = now() - interval '1 s'",
      'session_epoch = session_epoch + 1',
      "session_id = '0f0e0d0c-0b0a-4908-8706-050403020100'",
    ])('reports a change by another program: %s', async assignments => {
      const { hash, change } = await login()
      expect(await heardOf(write(assignments, hash))).toEqual([change])
    })

    it('reports that a revoked record becomes active again', async () => {
      const { hash, change } = await login()
      await write('revoked = 1', hash)()
      expect(await heardOf(write('revoked = 0', hash))).toEqual([change])
    })

    it('does not report changes of a record that version 0.1 stored without a session ID', async () => {
      const { hash } = await login()
      await write('session_id = null, session_created_at = null', hash)()
      const insert =
        "insert into refresh_tokens (user_id, token_hash, expires_at) values ($1, $2, now() + interval '1 h')"
      expect(await heardOf(() => database.query(insert, [id, randomUUID()]))).toEqual([])
      expect(await heardOf(write('revoked = 1, rotated_at = now()', hash))).toEqual([])
      const other = await login()
      await write('session_id = null', other.hash)()
      expect(await heardOf(write('revoked = 1', other.hash))).toEqual([])
    })

    it('reports the deletion of an active record, but not of an expired or exchanged record', async () => {
      const [live, old, over] = [await login(), await login(), await login()]
      const remove = (hash: string) => () =>
        database.query('delete from refresh_tokens where token_hash = $1', [hash])
      expect(await heardOf(remove(live.hash))).toEqual([live.change])
      await write("expires_at = now() - interval '1 s'", old.hash)()
      await write('revoked = 1, rotated_at = now()', over.hash)()
      expect(await heardOf(remove(over.hash))).toEqual([])
      expect(await heardOf(() => store.prune(new Date(), 1_000))).toEqual([])
    })
  })

  it('reports that a signing key is stored, scheduled or deleted, but not that it is encrypted', async () => {
    const store = createKeyStore(database)
    const told = ['signing_keys']
    expect(await heardOf(() => store.add('one', '{}'))).toEqual(told)
    expect(await heardOf(() => store.addSigning('two', '{}', 0))).toEqual(told)
    expect(await heardOf(() => store.replaceText('one', '{}', 'sealed'))).toEqual([])
    expect(await heardOf(() => store.letSign('one', 5_000))).toEqual(told)
    expect(await heardOf(() => store.letSign('nobody', 0))).toEqual([])
    const signsFrom = (await store.all()).find(({ kid }) => kid === 'two')?.signs_from ?? null
    expect(await heardOf(() => store.remove('two', null))).toEqual([])
    expect(await heardOf(() => store.remove('two', signsFrom))).toEqual(told)
  })

  it('has reported each committed change when catchUp resolves, even after many simultaneous changes', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => addUser(database)))
    heard.length = 0
    await Promise.all(
      ids.map(async each => {
        await database.query('update users set is_active = 0 where id = $1', [each])
        await feed.catchUp()
        expect(heard).toContain(`user ${each}`)
      }),
    )
  })

  it('becomes fresh within a second after its start, and reports no change of its state when it starts or closes', async () => {
    const another = startFeed()
    const told = states.length
    expect(another.isFresh()).toBe(false)
    await expect.poll(() => another.isFresh(), { timeout: 1_000, interval: 5 }).toBe(true)
    await another.close()
    expect(another.isFresh()).toBe(false)
    await another.catchUp()
    expect(states.slice(told)).toEqual([])
  })

  it('calls onGap, and reports no single change, if a table is truncated', async () => {
    for (const table of ['api_tokens', 'api_keys', 'refresh_tokens', 'users cascade', 'signing_keys']) {
      const before = gaps
      expect(await heardOf(() => database.query(`truncate ${table}`))).toEqual([])
      expect(gaps).toBeGreaterThan(before)
      expect(feed.isFresh()).toBe(true)
    }
  })
})
