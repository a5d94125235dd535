// Tests that sessions still work after deploy/postgres/partition-refresh-tokens.sql has partitioned the table.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { day, openRoom, outcome, password, type Room } from '../accounts/setup.ts'
import { describeOverSetups } from '../support/setups.ts'
import { pathOf } from './read.ts'

const hourMs = day / 24

describeOverSetups('refresh tokens after the change to a partitioned table', ({ openDatabase: open }) => {
  let database: Database
  let room: Room
  let before: string
  let triggersBefore: object[]

  beforeAll(async () => {
    database = await open()
    room = await openRoom(database)
    await room.register('ada@example.com')
    before = (await room.accounts.login({ email: 'ada@example.com', password })).refresh_token
    triggersBefore = await triggers()
    const sql = await readFile(pathOf('deploy/postgres/partition-refresh-tokens.sql'), 'utf8')
    for (const statement of sql.split(/;\n(?! {2})/).filter(each => each.trim() !== '')) {
      await database.query(statement)
    }
  })
  afterAll(() => database?.close())

  const triggers = () =>
    database.query(
      `select pg_get_triggerdef(oid) as definition from pg_trigger
        where tgrelid = 'refresh_tokens'::regclass and not tgisinternal order by tgname`,
    )

  it('have the same triggers as before the change', async () => {
    expect(triggersBefore).toHaveLength(3)
    expect(await triggers()).toEqual(triggersBefore)
  })

  it('include the tokens issued before the change, and each token can be exchanged only once', async () => {
    const { refresh_token: after } = await room.sessions.refresh(before)
    expect(await outcome(room.sessions.refresh(before))).toBe('refresh_token_inactive')
    const uses = await Promise.all([1, 2, 3, 4].map(() => outcome(room.sessions.refresh(after))))
    expect(uses.toSorted()).toEqual(['ok', ...Array(3).fill('refresh_token_inactive')])
  })

  it('are pruned, except for the active token of a session and tokens that were exchanged within the last day', async () => {
    const id = await room.register('daily@example.com')
    let { refresh_token: token } = await room.accounts.login({ email: 'daily@example.com', password })
    const rows = async () => {
      const [row] = await database.query<{ count: number }>(
        'select count(*)::int as count from refresh_tokens where user_id = $1',
        [id],
      )
      return row?.count
    }
    for (let hour = 0; hour < 72; hour += 1) {
      room.clock.advance(hourMs)
      token = (await room.sessions.refresh(token)).refresh_token
      await room.store.prune(new Date(room.clock.now()), 1_000)
    }
    expect(await rows()).toBe(25)
  })

  it('become inactive at a logout and at the end of all sessions, and are pruned after they expire', async () => {
    const ids = await Promise.all([1, 2, 3, 4, 5].map(nth => room.register(`user${nth}@example.com`)))
    const pairs = await Promise.all(
      ids.map((_, at) => room.accounts.login({ email: `user${at + 1}@example.com`, password })),
    )
    const [first, second, third] = pairs.map(pair => pair.refresh_token)
    await room.sessions.logout(first ?? '')
    await room.store.revokeAll(ids[1] ?? 0)
    expect(await outcome(room.sessions.refresh(first ?? ''))).toBe('refresh_token_inactive')
    expect(await outcome(room.sessions.refresh(second ?? ''))).toBe('refresh_token_inactive')
    expect(await outcome(room.sessions.refresh(third ?? ''))).toBe('ok')
    const partitions = await database.query('select distinct tableoid from refresh_tokens')
    expect(partitions.length).toBeGreaterThan(1)
    room.clock.advance(31 * day)
    expect(await room.store.prune(new Date(room.clock.now()), 1_000)).toBeGreaterThan(5)
    expect(await database.query('select id from refresh_tokens')).toEqual([])
  })
})
