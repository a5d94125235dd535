import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import type { TokenPair } from '../../src/accounts/sessions.ts'
import { sha256Hex } from '../../src/identity/token-hash.ts'
import type { Database, Queryable } from '../../src/storage/database.ts'
import { postgresDatabase } from '../support/databases.ts'
import { waitingForLocks } from '../support/locks.ts'
import { describeWithServices } from '../support/services.ts'
import { endless, storedToken } from '../support/sessions.ts'
import { describeOverSetups } from '../support/setups.ts'
import { day, openRoom, outcome, password, type Room, tally } from './setup.ts'

let count = 0
/** Creates a user and logs in once. */
async function newSession(room: Room): Promise<{ id: number; pair: TokenPair }> {
  count += 1
  const email = `session${count}@example.com`
  return { id: await room.register(email), pair: await room.accounts.login({ email, password }) }
}

interface Row {
  revoked: number
  rotated_at: Date | null
  expires_at: Date
  user_id: number
}

async function recordOf(database: Database, token: string): Promise<Row | undefined> {
  const columns = 'revoked, rotated_at, expires_at, user_id'
  return (
    await database.query<Row>(`select ${columns} from refresh_tokens where token_hash = $1`, [
      sha256Hex(token),
    ])
  )[0]
}

const used = (room: Room, token: string) => outcome(room.sessions.refresh(token))

describeOverSetups('sessions', ({ openDatabase: open }) => {
  let database: Database
  let room: Room

  beforeAll(async () => {
    database = await open()
    room = await openRoom(database)
  })
  afterAll(() => database.close())

  it('a login stores the SHA-256 of its refresh token, which expires in 30 days', async () => {
    const { id, pair } = await newSession(room)
    expect(await recordOf(database, pair.refresh_token)).toEqual({
      revoked: 0,
      rotated_at: null,
      expires_at: new Date(room.clock.now() + 30 * day),
      user_id: id,
    })
  })

  it('a refresh returns new tokens, revokes the presented refresh token and stores its successor', async () => {
    const { id, pair } = await newSession(room)
    await room.users.update(id, { plan: 'pro' })
    const next = await room.sessions.refresh(` ${pair.refresh_token}\n`)
    expect(next).toMatchObject({ token_type: 'Bearer', plan: 'pro' })
    expect(next.refresh_token).not.toBe(pair.refresh_token)
    expect(await room.tokens.verifyAccess(next.access_token)).toMatchObject({ userId: id })
    expect(await recordOf(database, pair.refresh_token)).toMatchObject({
      revoked: 1,
      rotated_at: new Date(room.clock.now()),
    })
    expect(await recordOf(database, next.refresh_token)).toMatchObject({ revoked: 0, rotated_at: null })
  })

  it('a refresh token is refused at its second use, and its successor keeps working', async () => {
    const { pair } = await newSession(room)
    const next = await room.sessions.refresh(pair.refresh_token)
    expect(await used(room, pair.refresh_token)).toBe('refresh_token_inactive')
    expect(await used(room, next.refresh_token)).toBe('ok')
  })

  it('exactly one of 50 simultaneous uses of a refresh token succeeds', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { id, pair } = await newSession(room)
      const uses = await Promise.all(Array.from({ length: 50 }, () => used(room, pair.refresh_token)))
      expect(tally(uses)).toEqual({ ok: 1, refresh_token_inactive: 49 })
      expect(await room.activeSessions(id)).toHaveLength(1)
    }
  })

  it('a refresh with a missing, an invalid or an inactive token is refused, with a different error code for each', async () => {
    const { id, pair } = await newSession(room)
    expect(await used(room, '')).toBe('refresh_token_missing')
    expect(await used(room, ' \t\n')).toBe('refresh_token_missing')
    expect(await used(room, 'x')).toBe('refresh_token_invalid')
    expect(await used(room, '\ud800')).toBe('refresh_token_invalid')
    expect(await used(room, pair.access_token)).toBe('refresh_token_invalid')
    // This token has a valid signature, but no record.
    expect(await used(room, (await room.tokens.issueRefresh(id, endless)).token)).toBe(
      'refresh_token_inactive',
    )
  })

  it.each<[string, (id: number, token: string) => Promise<unknown>]>([
    [
      'that is stored for another user',
      async (_, token) =>
        database.query('update refresh_tokens set user_id = $1 where token_hash = $2', [
          (await newSession(room)).id,
          sha256Hex(token),
        ]),
    ],
    [
      'whose expires_at in the store has passed',
      (_, token) =>
        database.query('update refresh_tokens set expires_at = $1 where token_hash = $2', [
          new Date(room.clock.now()),
          sha256Hex(token),
        ]),
    ],
    ['that was logged out', (_, token) => room.sessions.logout(` ${token} `)],
    ['whose user has had all sessions revoked', id => room.store.revokeAll(id)],
  ])('a token %s is refused, and tokens of other users stay valid', async (_, end) => {
    const { id, pair } = await newSession(room)
    const other = await newSession(room)
    await end(id, pair.refresh_token)
    expect(await used(room, pair.refresh_token)).toBe('refresh_token_inactive')
    expect(await used(room, other.pair.refresh_token)).toBe('ok')
  })

  it('a refresh token whose JWT has expired is refused as invalid', async () => {
    const other = await openRoom(database)
    const { pair } = await newSession(other)
    other.clock.advance(30 * day)
    expect(await used(other, pair.refresh_token)).toBe('refresh_token_invalid')
  })

  it('a refresh by an inactive user is refused with user_not_found and revokes nothing', async () => {
    const { id, pair } = await newSession(room)
    await room.users.update(id, { is_active: 0 })
    expect(await used(room, pair.refresh_token)).toBe('user_not_found')
    expect(await recordOf(database, pair.refresh_token)).toMatchObject({ revoked: 0, rotated_at: null })
    await room.users.update(id, { is_active: 1 })
    expect(await used(room, pair.refresh_token)).toBe('ok')
  })

  it('an inactive token of an inactive user is refused with refresh_token_inactive', async () => {
    const { id, pair } = await newSession(room)
    const next = await room.sessions.refresh(pair.refresh_token)
    await room.sessions.logout(next.refresh_token)
    await room.users.update(id, { is_active: 0 })
    expect(await used(room, pair.refresh_token)).toBe('refresh_token_inactive')
    expect(await used(room, next.refresh_token)).toBe('refresh_token_inactive')
  })

  it('a logout without a valid refresh token changes nothing and does not fail', async () => {
    const { pair } = await newSession(room)
    for (const token of ['', ' ', 'x', 'a\0', '\ud800', pair.access_token, 'x'.repeat(60_000)]) {
      await room.sessions.logout(token)
    }
    expect(room.pendingRevocations.count).toBe(0)
    expect(await used(room, pair.refresh_token)).toBe('ok')
  })

  it('the list of sessions contains only active sessions', async () => {
    const { id, pair } = await newSession(room)
    const next = await room.sessions.refresh(pair.refresh_token)
    expect(await room.activeSessions(id)).toEqual([
      {
        id: expect.any(String),
        created_at: expect.any(Date),
        last_used_at: new Date(room.clock.now()),
        expires_at: new Date(room.clock.now() + 30 * day),
        user_agent: null,
      },
    ])
    await room.sessions.logout(next.refresh_token)
    expect(await room.activeSessions(id)).toEqual([])
  })

  it('a user can log in after revokeAll, which returns false for an unknown user', async () => {
    const { id } = await newSession(room)
    expect(await room.store.revokeAll(id)).toBe(true)
    const again = await room.accounts.login({ email: (await room.users.findById(id))?.email ?? '', password })
    expect(await used(room, again.refresh_token)).toBe('ok')
    expect(await room.store.revokeAll(9007199254740991)).toBe(false)
  })

  it('after revokeAll, every token is invalid, even if 20 clients of the user refresh their tokens at the same time', async () => {
    for (let round = 0; round < 20; round += 1) await raceRevokeAll(room)
  })

  describe('with the setting `reuse: revoke_all`', () => {
    let strict: Room
    beforeAll(async () => {
      strict = await openRoom(database, { reuse: 'revoke_all' })
    })

    it.each([
      [10_001, 'refresh_token_inactive'],
      [10_000, 'ok'],
    ])(
      'if a token is reused %i ms after its rotation, the next use of its successor has the result %s',
      async (passedMs, successor) => {
        const { pair } = await newSession(strict)
        const next = await strict.sessions.refresh(pair.refresh_token)
        strict.clock.advance(passedMs)
        expect(await used(strict, pair.refresh_token)).toBe('refresh_token_inactive')
        expect(await used(strict, next.refresh_token)).toBe(successor)
      },
    )

    it('if a token that was logged out or never stored is used, no other session is revoked', async () => {
      const { id, pair } = await newSession(strict)
      const email = (await strict.users.findById(id))?.email ?? ''
      const other = await strict.accounts.login({ email, password })
      await strict.sessions.logout(pair.refresh_token)
      strict.clock.advance(60_000)
      expect(await used(strict, pair.refresh_token)).toBe('refresh_token_inactive')
      expect(await used(strict, (await strict.tokens.issueRefresh(id, endless)).token)).toBe(
        'refresh_token_inactive',
      )
      expect(await used(strict, other.refresh_token)).toBe('ok')
    })
  })

  it('with the setting `reuse: reject`, the reuse of a token one minute after its rotation revokes no session', async () => {
    const { pair } = await newSession(room)
    const next = await room.sessions.refresh(pair.refresh_token)
    room.clock.advance(60_000)
    expect(await used(room, pair.refresh_token)).toBe('refresh_token_inactive')
    expect(await used(room, next.refresh_token)).toBe('ok')
  })
})

/**
 * Calls `revokeAll` while 20 clients of one user exchange their tokens again and again. Before the call, each client
 * has exchanged at least one token.
 */
async function raceRevokeAll(room: Room): Promise<void> {
  count += 1
  const email = `race${count}@example.com`
  const id = await room.register(email)
  const epoch = 0
  const clients = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const opened = await room.sessions.create(id, epoch)
      if (opened === 'user_inactive') throw new Error('no session was created')
      return { latest: opened.refresh_token, rotations: 0 }
    }),
  )
  let begun = 0
  let allBegun = () => {}
  const ready = new Promise<void>(resolve => {
    allBegun = resolve
  })
  const loops = clients.map(async client => {
    for (;;) {
      const pair = await room.sessions.refresh(client.latest).catch(() => undefined)
      if (pair === undefined) return
      client.latest = pair.refresh_token
      client.rotations += 1
      if (client.rotations === 1) begun += 1
      if (begun === clients.length) allBegun()
    }
  })
  await ready
  await room.store.revokeAll(id)
  await Promise.all(loops)
  const afterwards = await Promise.all(clients.map(({ latest }) => used(room, latest)))
  expect(tally(afterwards)).toEqual({ refresh_token_inactive: 20 })
  expect(await room.activeSessions(id)).toEqual([])
}

describeWithServices('sessions changed by two connections', () => {
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  let room: Room

  beforeAll(async () => {
    database = await postgresDatabase()
    room = await openRoom(database)
  })
  afterAll(() => database.close())

  /** Exchanges a token in a transaction that stays open while `meanwhile` runs. @returns the new token */
  async function rotateSlowly(id: number, token: string, meanwhile: () => Promise<void>): Promise<string> {
    const successor = await room.tokens.issueRefresh(id, endless)
    await database.transaction(async tx => {
      const rotation = await storeWithin(tx).rotate(
        { userId: id, tokenHash: sha256Hex(token) },
        storedToken(sha256Hex(successor.token), successor.expiresAt),
        new Date(room.clock.now()),
      )
      expect(rotation.outcome).toBe('rotated')
      await meanwhile()
    })
    return successor.token
  }

  const storeWithin = (tx: Queryable) =>
    createSessionStore({ ...database, query: (sql, values) => tx.query(sql, values) })

  it('revokeAll does not wait for a running rotation, and the token that this rotation creates is invalid', async () => {
    const { id, pair } = await newSession(room)
    const successor = await rotateSlowly(id, pair.refresh_token, async () => {
      expect(await room.store.revokeAll(id)).toBe(true)
    })
    expect(await recordOf(database, successor)).toMatchObject({ revoked: 0 })
    expect(await used(room, successor)).toBe('refresh_token_inactive')
    expect(await room.activeSessions(id)).toEqual([])
  })

  it('a rotation that has to wait for revokeAll is refused', async () => {
    const { id, pair } = await newSession(room)
    let late: Promise<string> | undefined
    await database.transaction(async tx => {
      await tx.query('update users set session_epoch = session_epoch + 1 where id = $1', [id])
      await tx.query('update refresh_tokens set revoked = 1 where user_id = $1', [id])
      late = used(room, pair.refresh_token)
      await waitingForLocks(database)
    })
    expect(await late).toBe('refresh_token_inactive')
    expect(await room.activeSessions(id)).toEqual([])
  })

  it('later uses of a token that have to wait for its first use are refused', async () => {
    const { id, pair } = await newSession(room)
    let late: Promise<string[]> | undefined
    const successor = await rotateSlowly(id, pair.refresh_token, async () => {
      late = Promise.all(Array.from({ length: 4 }, () => used(room, pair.refresh_token)))
      await waitingForLocks(database, 4)
    })
    expect(tally((await late) ?? [])).toEqual({ refresh_token_inactive: 4 })
    expect(await room.activeSessions(id)).toHaveLength(1)
    expect(await used(room, successor)).toBe('ok')
  })

  it('with the setting `reuse: revoke_all`, two simultaneous uses of a two-day-old token revoke no session', async () => {
    const strict = await openRoom(database, { reuse: 'revoke_all' })
    const { id, pair } = await newSession(strict)
    strict.clock.advance(2 * day)
    const refresh = () => strict.sessions.refresh(pair.refresh_token)
    let both: Promise<PromiseSettledResult<TokenPair>[]> | undefined
    // While this transaction holds the lock, both exchanges wait. So both exchanges have read that the token is active,
    // before one of them exchanges it.
    await database.transaction(async tx => {
      await tx.query('select 1 from users where id = $1 for update', [id])
      both = Promise.allSettled([refresh(), refresh()])
      await waitingForLocks(database, 2)
    })
    const won = ((await both) ?? []).flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    expect(won).toHaveLength(1)
    expect(await used(strict, won[0]?.refresh_token ?? '')).toBe('ok')
  })

  it('the second use of a token waits for the first use, and succeeds only if the first use is rolled back', async () => {
    const { id, pair } = await newSession(room)
    let late: Promise<string> | undefined
    const failing = rotateSlowly(id, pair.refresh_token, async () => {
      late = used(room, pair.refresh_token)
      await waitingForLocks(database)
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    expect(await late).toBe('ok')
    expect(await room.activeSessions(id)).toHaveLength(1)
  })

  it('a deletion of the user and a rotation cause no deadlock, whichever comes first', async () => {
    const first = await newSession(room)
    let deletion: Promise<boolean> | undefined
    const successor = await rotateSlowly(first.id, first.pair.refresh_token, async () => {
      deletion = room.users.delete(first.id)
      await waitingForLocks(database)
    })
    expect(await deletion).toBe(true)
    expect(await used(room, successor)).toBe('refresh_token_inactive')

    const second = await newSession(room)
    let late: Promise<string> | undefined
    await database.transaction(async tx => {
      // A deletion first locks the user and then the sessions. The rotation starts between these two locks.
      await tx.query('select 1 from users where id = $1 for update', [second.id])
      late = used(room, second.pair.refresh_token)
      await waitingForLocks(database)
      await tx.query('delete from users where id = $1', [second.id])
    })
    expect(await late).toBe('refresh_token_inactive')
  })
})
