// Tests cached sessions with real stores: reads, notified changes, and requests while the feed is not trusted.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createSessionStore, type SessionStore } from '../../../src/accounts/session-store.ts'
import { createSessionCache, type SessionCache } from '../../../src/identity/cache/session-cache.ts'
import type { Database } from '../../../src/storage/database.ts'
import { type HandFeed, handFeed } from '../../support/hand-feed.ts'
import { signIn, storedToken } from '../../support/sessions.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { addUser } from '../../support/users.ts'

const hour = 3_600_000

describeOverSetups('cached sessions', ({ openDatabase: open }) => {
  let database: Database
  let store: SessionStore
  let feed: HandFeed
  let cache: SessionCache
  let reads: number
  let now: number
  const ending = new Set<string>()
  let user: { id: number; session_epoch: number }
  let token: ReturnType<typeof storedToken>

  beforeAll(async () => {
    database = await open()
    store = createSessionStore(database)
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    feed = handFeed()
    reads = 0
    now = Date.now()
    ending.clear()
    cache = create()
    user = { id: await addUser(database), session_epoch: 0 }
    token = await login()
  })

  function create(maxSessions = 100): SessionCache {
    return createSessionCache({
      async read(userId, sessionId) {
        reads += 1
        return (await store.findActive([{ userId, sessionId }], new Date(now))).get(sessionId)
      },
      isEnding: sessionId => ending.has(sessionId),
      feed,
      clock: { now: () => now },
      maxSessions,
      results: { hit: 0, miss: 0, bypass: 0 },
    })
  }

  async function login(expiresInMs = hour) {
    const stored = storedToken(randomUUID(), new Date(now + expiresInMs))
    await store.create(user.id, user.session_epoch, stored, signIn())
    return stored
  }
  const isLive = (sessionId = token.sessionId) => cache.isLive(user, sessionId)
  const tell = (sessionId = token.sessionId) => feed.tell(`session ${user.id} ${sessionId}`)

  it('stay live until a notification about their end arrives, and are then read only once more', async () => {
    await isLive()
    await store.revoke([token.tokenHash])
    expect(isLive()).toBe(true)
    tell()
    expect(await isLive()).toBe(false)
    expect(isLive()).toBe(false)
    expect(reads).toBe(2)
  })

  it('count as ended if their session epoch is lower than the session epoch of the user', async () => {
    await isLive()
    await store.revokeAll(user.id)
    const late = await login()
    user = { ...user, session_epoch: user.session_epoch + 1 }
    expect(isLive()).toBe(false)
    expect(await isLive(late.sessionId)).toBe(false)
  })

  it('are live if their session epoch is higher than the session epoch of the cached user', async () => {
    await store.revokeAll(user.id)
    const before = user
    user = { ...user, session_epoch: user.session_epoch + 1 }
    const fresh = await login()
    expect(await cache.isLive(before, fresh.sessionId)).toBe(true)
  })

  it('are not live if they are unknown or belong to another user', async () => {
    expect(await cache.isLive({ ...user, id: user.id + 1_000_000 }, token.sessionId)).toBe(false)
    expect(await isLive(randomUUID())).toBe(false)
  })

  it('are live until their last refresh token expires', async () => {
    await isLive()
    const successor = {
      ...storedToken(randomUUID(), new Date(now + 2 * hour)),
      sessionId: token.sessionId,
    }
    await store.rotate({ userId: user.id, tokenHash: token.tokenHash }, successor, new Date(now))
    now += hour + 1_000
    expect(await isLive()).toBe(true)
    expect(reads).toBe(2)
    now += hour
    expect(await isLive()).toBe(false)
  })

  it('are read from the store for every request while the feed is not trusted, and once more when it is trusted again', async () => {
    await isLive()
    await store.revoke([token.tokenHash])
    feed.trust(false)
    expect(await isLive()).toBe(false)
    expect(await isLive()).toBe(false)
    expect(reads).toBe(3)
    await database.query('update refresh_tokens set revoked = 0 where token_hash = $1', [token.tokenHash])
    feed.trust(true)
    expect(await isLive()).toBe(true)
  })

  it('count as ended on this replica as soon as their logout is queued, even before the logout is stored', async () => {
    await isLive()
    ending.add(token.sessionId)
    expect(isLive()).toBe(false)
  })

  it('ignore notifications that are malformed or do not refer to sessions', async () => {
    await isLive()
    for (const change of ['', 'session', 'session ', `session ${user.id}`, `user ${user.id}`])
      feed.tell(change)
    expect(isLive()).toBe(true)
  })
})
