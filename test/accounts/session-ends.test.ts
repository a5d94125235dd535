// Tests that an ended session stays ended, even if one of its tokens is exchanged at the same time.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SignedIn } from '../../src/accounts/sessions.ts'
import { sha256Hex } from '../../src/identity/token-hash.ts'
import type { Database } from '../../src/storage/database.ts'
import { runs } from '../support/property-runs.ts'
import { claimsOf } from '../support/sessions.ts'
import { describeOverSetups } from '../support/setups.ts'
import { day, openRoom, outcome, type Room } from './setup.ts'

describeOverSetups('a session', ({ openDatabase: open }) => {
  let database: Database
  let room: Room
  let people = 0

  beforeAll(async () => {
    database = await open()
    room = await openRoom(database, { reuse: 'revoke_all' })
  })
  afterAll(() => database.close())

  async function newUser() {
    people += 1
    const email = `end${people}@example.com`
    return { id: await room.register(email), email }
  }
  /** Opens a session as a login does, but without a password. */
  async function login(email: string): Promise<SignedIn> {
    const { id = 0, session_epoch = 0 } = (await room.users.findPasswordRecord(email)) ?? {}
    const opened = await room.sessions.create(id, session_epoch)
    return opened === 'user_inactive' ? expect.unreachable() : opened
  }

  describe.each<[string, (id: number, token: string) => Promise<unknown>]>([
    ['ended by its id', (id, token) => room.store.end(id, String(claimsOf(token).sid))],
    ['ended with all other sessions', id => room.store.endOthers(id, undefined, new Date(room.clock.now()))],
    ['logged out', (_, token) => room.sessions.logout(token)],
    ['revoked with all sessions of its user', id => room.store.revokeAll(id)],
  ])('after it was %s', (_, end) => {
    it('has no valid token, even if a client exchanged a token at the same time', async () => {
      const { id, email } = await newUser()
      for (let turn = 0; turn < runs(100); turn += 1) {
        const { refresh_token: token } = await login(email)
        const [rotated] = await Promise.allSettled([room.sessions.refresh(token), end(id, token)])
        const last = rotated.status === 'fulfilled' ? rotated.value.refresh_token : token
        expect(await outcome(room.sessions.refresh(last))).toBe('refresh_token_inactive')
      }
    })
  })

  it('created by version 0.1 has a stable id that is derived from its record', async () => {
    const { id, email } = await newUser()
    await login(email)
    await database.query(
      'update refresh_tokens set session_id = null, session_created_at = null where user_id = $1',
      [id],
    )
    const [before] = await room.store.list(id, new Date(room.clock.now()))
    const [again] = await room.store.list(id, new Date(room.clock.now()))
    // The id is a UUID of version 8 (RFC 9562 §5.8).
    expect(before?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(again?.id).toBe(before?.id)
    await room.store.end(id, before?.id ?? '')
    expect(await room.store.list(id, new Date(room.clock.now()))).toEqual([])
  })

  it('created by version 0.1 and rotated by a later version ends if a client logs out with the exchanged token', async () => {
    const { id, email } = await newUser()
    const old = await login(email)
    await database.query('update refresh_tokens set session_id = null where user_id = $1', [id])
    await room.sessions.refresh(old.refresh_token)
    // That later version derived the session id from the record of the exchanged token, in another way than the current
    // version. It stored this id in the new record. This statement does the same.
    await database.query(
      `update refresh_tokens t set session_id = md5('peage session ' || old.id)::uuid
         from refresh_tokens old
        where t.user_id = $1 and t.revoked = 0 and old.user_id = $1 and old.revoked = 1`,
      [id],
    )
    expect(await room.store.list(id, new Date(room.clock.now()))).toHaveLength(1)
    await room.store.revoke([sha256Hex(old.refresh_token)])
    expect(await room.store.list(id, new Date(room.clock.now()))).toEqual([])
  })

  it('is revoked with all other sessions of the user if an exchanged token is used after its record was pruned', async () => {
    const { id, email } = await newUser()
    const [stolen, other] = [await login(email), await login(email)]
    const next = await room.sessions.refresh(stolen.refresh_token)
    room.clock.advance(day + 60_000)
    expect(await room.store.prune(new Date(room.clock.now()), 1_000)).toBeGreaterThan(0)
    expect(await outcome(room.sessions.refresh(stolen.refresh_token))).toBe('refresh_token_inactive')
    for (const token of [next, other]) {
      expect(await outcome(room.sessions.refresh(token.refresh_token))).toBe('refresh_token_inactive')
    }
    expect(await room.store.list(id, new Date(room.clock.now()))).toEqual([])
  })

  const isStored = async (token: string) =>
    (await database.query('select from refresh_tokens where token_hash = $1', [sha256Hex(token)])).length ===
    1
  const prune = () => room.store.prune(new Date(room.clock.now()), 1_000)

  it('does not end if a client logs out with an exchanged token whose record was pruned', async () => {
    const { email } = await newUser()
    const first = await login(email)
    const next = await room.sessions.refresh(first.refresh_token)
    room.clock.advance(day - 1_000)
    await prune()
    expect(await isStored(first.refresh_token)).toBe(true)
    room.clock.advance(1_000)
    await prune()
    expect(await isStored(first.refresh_token)).toBe(false)
    expect(await room.sessions.logout(first.refresh_token)).toBeUndefined()
    expect(await outcome(room.sessions.refresh(next.refresh_token))).toBe('ok')
  })

  it('created by version 0.1 keeps the record of an exchanged token until the token expires', async () => {
    const { id, email } = await newUser()
    const first = await login(email)
    await database.query('update refresh_tokens set session_id = null where user_id = $1', [id])
    await room.sessions.refresh(first.refresh_token)
    room.clock.advance(29 * day)
    await prune()
    expect(await isStored(first.refresh_token)).toBe(true)
    room.clock.advance(day)
    await prune()
    expect(await isStored(first.refresh_token)).toBe(false)
  })

  it('is revoked if a token without a record is used, but only if this token is at least a day old', async () => {
    const { id, email } = await newUser()
    const signedIn = await login(email)
    const session = { id: String(claimsOf(signedIn.refresh_token).sid), endsAtMs: Number.POSITIVE_INFINITY }
    const { token } = await room.tokens.issueRefresh(id, session)
    // The claim `iat` has whole seconds, so the test uses times one second before and after the limit.
    room.clock.advance(day - 1_000)
    expect(await outcome(room.sessions.refresh(token))).toBe('refresh_token_inactive')
    const next = await room.sessions.refresh(signedIn.refresh_token)
    room.clock.advance(2_000)
    expect(await outcome(room.sessions.refresh(token))).toBe('refresh_token_inactive')
    expect(await outcome(room.sessions.refresh(next.refresh_token))).toBe('refresh_token_inactive')
  })

  it('leaves the other sessions active after its logout, even if its token is used a day later', async () => {
    const { email } = await newUser()
    const [ended, other] = [await login(email), await login(email)]
    await room.sessions.logout(ended.refresh_token)
    room.clock.advance(day + 60_000)
    expect(await outcome(room.sessions.refresh(ended.refresh_token))).toBe('refresh_token_inactive')
    expect(await outcome(room.sessions.refresh(other.refresh_token))).toBe('ok')
  })
})
