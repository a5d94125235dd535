// What ends a session ends it for good, whatever rotation is under way (CONTRACT §12, "Sessions").
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SignedIn } from '../../src/accounts/sessions.ts'
import type { Database } from '../../src/storage/database.ts'
import { describeOverDatabases } from '../support/databases.ts'
import { day, openRoom, outcome, type Room } from './setup.ts'

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describeOverDatabases('a session', open => {
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
  /** As a login does, without its password. */
  async function login(email: string): Promise<SignedIn> {
    const { id = 0, session_epoch = 0 } = (await room.users.findPasswordRecord(email)) ?? {}
    const opened = await room.sessions.create(id, session_epoch)
    return opened === 'user_inactive' ? expect.unreachable() : opened
  }

  describe.each<[string, (id: number, token: string) => Promise<unknown>]>([
    ['ended by its id', (id, token) => room.store.end(id, claimsOf(token).sid)],
    ['ended with all others', id => room.store.endOthers(id, undefined, new Date(room.clock.now()))],
    ['logged out', (_, token) => room.sessions.logout(token)],
    ['revoked with all of its user', id => room.store.revokeAll(id)],
  ])('that is %s', (_, end) => {
    it('has no token that works afterwards, of 100 that were being exchanged', async () => {
      const { id, email } = await newUser()
      for (let turn = 0; turn < 100; turn += 1) {
        const { refresh_token: token } = await login(email)
        const [rotated] = await Promise.allSettled([room.sessions.refresh(token), end(id, token)])
        const last = rotated.status === 'fulfilled' ? rotated.value.refresh_token : token
        expect(await outcome(room.sessions.refresh(last))).toBe('refresh_token_inactive')
      }
    })
  })

  it('that is of 0.1 has an id that is derived from its record, and keeps it', async () => {
    const { id, email } = await newUser()
    await login(email)
    await database.query(
      'update refresh_tokens set session_id = null, session_created_at = null where user_id = $1',
      [id],
    )
    const [before] = await room.store.list(id, new Date(room.clock.now()))
    const [again] = await room.store.list(id, new Date(room.clock.now()))
    expect(before?.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(again?.id).toBe(before?.id)
    await room.store.end(id, before?.id ?? '')
    expect(await room.store.list(id, new Date(room.clock.now()))).toEqual([])
  })

  it('whose exchanged token comes back after its record was pruned is revoked with all others', async () => {
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

  it('that is over is no theft when its token comes back a day later', async () => {
    const { email } = await newUser()
    const [ended, other] = [await login(email), await login(email)]
    await room.sessions.logout(ended.refresh_token)
    room.clock.advance(day + 60_000)
    expect(await outcome(room.sessions.refresh(ended.refresh_token))).toBe('refresh_token_inactive')
    expect(await outcome(room.sessions.refresh(other.refresh_token))).toBe('ok')
  })
})
