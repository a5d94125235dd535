// CONTRACT §12: which ends of sessions are notified, whoever wrote them, and that rotations and pruning are not.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { createSessionStore, type SessionStore } from '../../src/accounts/session-store.ts'
import type { ChangeFeed } from '../../src/storage/change-feed.ts'
import type { Database } from '../../src/storage/database.ts'
import { openFeed } from '../support/feed.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { describeOnBothSetups } from '../support/setups.ts'

const hour = 3_600_000

describeOnBothSetups('the feed of sessions', ({ openDatabase: open }) => {
  let database: Database
  let feed: ChangeFeed
  let store: SessionStore
  const heard: string[] = []
  let gaps = 0
  let id: number

  beforeAll(async () => {
    database = await open()
    store = createSessionStore(database)
    feed = openFeed(database)
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
    const [row] = await database.query<{ id: number }>(
      `insert into users (email, password_hash) values ($1, 'none') returning id`,
      [`${randomUUID()}@example.com`],
    )
    id = row?.id ?? expect.unreachable()
  })

  /** All notifications caused by `work`. */
  async function heardOf(work: () => Promise<unknown>): Promise<string[]> {
    await feed.catchUp()
    heard.length = 0
    await work()
    await feed.catchUp()
    return heard.toSorted()
  }

  async function login(): Promise<{ hash: string; sid: string; change: string }> {
    const token = storedToken(randomUUID(), new Date(Date.now() + hour))
    await store.create(id, 0, token, signIn())
    return { hash: token.tokenHash, sid: token.sessionId, change: `session ${id} ${token.sessionId}` }
  }
  /** As any program may write it. */
  const write = (assignments: string, hash: string) => () =>
    database.query(`update refresh_tokens set ${assignments} where token_hash = $1`, [hash])

  it('tells of each way in which a session ends, once', async () => {
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

  it('tells of a session under the id that it keeps through rotations, and of no rotation', async () => {
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
  ])('tells of what another program writes: %s', async assignments => {
    const { hash, change } = await login()
    expect(await heardOf(write(assignments, hash))).toEqual([change])
  })

  it('tells of a revoked record that is made active again', async () => {
    const { hash, change } = await login()
    await write('revoked = 1', hash)()
    expect(await heardOf(write('revoked = 0', hash))).toEqual([change])
  })

  it('tells nothing of a record without an id, which 0.1 stored, whatever 0.1 does with it', async () => {
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

  it('tells of a record that is deleted while it is active, and of none that is pruned', async () => {
    const [live, old, over] = [await login(), await login(), await login()]
    const remove = (hash: string) => () =>
      database.query('delete from refresh_tokens where token_hash = $1', [hash])
    expect(await heardOf(remove(live.hash))).toEqual([live.change])
    await write("expires_at = now() - interval '1 s'", old.hash)()
    await write('revoked = 1, rotated_at = now()', over.hash)()
    expect(await heardOf(remove(over.hash))).toEqual([])
    expect(await heardOf(() => store.prune(new Date(), 1_000))).toEqual([])
  })

  it('takes an emptied table for a gap', async () => {
    const before = gaps
    expect(await heardOf(() => database.query('truncate refresh_tokens'))).toEqual([])
    expect(gaps).toBeGreaterThan(before)
  })
})
