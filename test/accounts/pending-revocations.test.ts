import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { createPendingRevocations } from '../../src/accounts/pending-revocations.ts'
import { createSessionStore, type SessionStore } from '../../src/accounts/session-store.ts'
import { sha256Hex } from '../../src/identity/token-hash.ts'
import { type Database, StorageError } from '../../src/storage/database.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { postgresDatabase } from '../support/databases.ts'
import { lendDatabase } from '../support/lent-database.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary, describeWithServices } from '../support/services.ts'
import { openRoom, outcome, password, type Room } from './setup.ts'

/** Wraps a database, so that a test can make its queries fail for a while. */
function cuttable(database: Database) {
  const state = { cut: false, statements: 0 }
  const cuttableDatabase: Database = {
    ...database,
    async query(sql, values) {
      state.statements += 1
      if (state.cut) throw new StorageError('cut off', undefined, undefined)
      return database.query(sql, values)
    },
    async transaction(work, options) {
      state.statements += 1
      if (state.cut) throw new StorageError('cut off', undefined, undefined)
      return database.transaction(work, options)
    },
  }
  return { database: cuttableDatabase, state }
}

const pendingOver = (store: Pick<SessionStore, 'revoke'>, changesVisible = async () => {}) =>
  createPendingRevocations({ store, changesVisible, onError: () => {} })

describe('logouts while the store is down', () => {
  let embedded: Database
  let database: Database
  let state: { cut: boolean; statements: number }
  let room: Room
  let count = 0

  beforeAll(async () => {
    embedded = await lendDatabase()
    const cut = cuttable(embedded)
    database = cut.database
    state = cut.state
    room = await openRoom(database)
  })
  afterAll(() => embedded.close())
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    state.cut = false
  })
  afterEach(async () => {
    state.cut = false
    await room.pendingRevocations.flush()
    vi.useRealTimers()
  })

  async function newToken(): Promise<string> {
    count += 1
    const email = `logout${count}@example.com`
    await room.register(email)
    return (await room.accounts.login({ email, password })).refresh_token
  }
  const isRevoked = async (token: string) =>
    (
      await embedded.query('select 1 from refresh_tokens where token_hash = $1 and revoked = 1', [
        sha256Hex(token),
      ])
    ).length === 1

  it('are queued, and stored without another request when the store is back', async () => {
    const token = await newToken()
    state.cut = true
    await room.sessions.logout(token)
    expect(room.pendingRevocations.count).toBe(1)
    await vi.advanceTimersByTimeAsync(500)
    expect(room.pendingRevocations.count).toBe(1)
    state.cut = false
    await vi.advanceTimersByTimeAsync(1000)
    await room.pendingRevocations.flush()
    expect(room.pendingRevocations.count).toBe(0)
    expect(await isRevoked(token)).toBe(true)
  })

  it('are first retried after 50 ms, and later once a second', async () => {
    const token = await newToken()
    state.cut = true
    await room.sessions.logout(token)
    const triesDuring = async (milliseconds: number) => {
      const before = state.statements
      await vi.advanceTimersByTimeAsync(milliseconds)
      return state.statements - before
    }
    expect(await triesDuring(49)).toBe(0)
    expect(await triesDuring(1)).toBe(1)
    await triesDuring(10_000)
    expect(await triesDuring(10_000)).toBe(10)
  })

  it('block every refresh until the logouts are stored; then the tokens of the ended sessions are inactive', async () => {
    const [token, other] = [await newToken(), await newToken()]
    state.cut = true
    await room.sessions.logout(token)
    expect(await outcome(room.sessions.refresh(other))).toBe('service_unavailable')
    state.cut = false
    expect(await outcome(room.sessions.refresh(token))).toBe('refresh_token_inactive')
    expect(room.pendingRevocations.count).toBe(0)
    expect(await outcome(room.sessions.refresh(other))).toBe('ok')
  })

  it('do not change the error code of a refresh with a missing or an invalid token', async () => {
    const token = await newToken()
    state.cut = true
    await room.sessions.logout(token)
    expect(await outcome(room.sessions.refresh(''))).toBe('refresh_token_missing')
    expect(await outcome(room.sessions.refresh('x'))).toBe('refresh_token_invalid')
  })

  it('are queued only for tokens that the gateway signed', async () => {
    const token = await newToken()
    state.cut = true
    const [header, payload] = token.split('.')
    await room.sessions.logout('x')
    await room.sessions.logout(`${header}.${payload}.${Buffer.alloc(64, 1).toString('base64url')}`)
    expect(room.pendingRevocations.count).toBe(0)
  })

  it('are queued for a token whose key is unknown, because another replica may have created the key', async () => {
    const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'rt+jwt', kid: 'elsewhere' }))
    const token = await newToken()
    state.cut = true
    const before = state.statements
    await room.sessions.logout(token.replace(/^[^.]+/, header.toString('base64url')))
    expect(room.pendingRevocations.count).toBe(1)
    // The only statement is the revocation. While the store is down, the unknown key is not looked up.
    expect(state.statements - before).toBe(1)
  })

  it('are queued for at most 100,000 unverified tokens, and for any number of verified tokens', () => {
    const store = { revoke: () => Promise.reject(new StorageError('away', undefined, undefined)) }
    const pending = pendingOver(store)
    for (let i = 0; i < 100_005; i += 1) pending.add(`uncertain${i}`, false)
    expect(pending.count).toBe(100_000)
    pending.add('certain', true)
    expect(pending.count).toBe(100_001)
    pending.close()
  })

  it('are all stored by one flush, even if logouts are added during the flush', async () => {
    const pending = pendingOver(createSessionStore(database))
    const token = await newToken()
    for (let i = 0; i < 2500; i += 1) pending.add(sha256Hex(String(i)), true)
    const flushed = [pending.flush(), pending.flush()]
    pending.add(sha256Hex(token), true)
    await Promise.all(flushed)
    expect(pending.count).toBe(0)
    expect(await isRevoked(token)).toBe(true)
    pending.close()
  })

  it('mark their session as ending until all requests see the stored revocation', async () => {
    let show = () => {}
    const visible = new Promise<void>(resolve => {
      show = resolve
    })
    const pending = pendingOver(createSessionStore(database), () => visible)
    pending.add(sha256Hex('certain'), true, 'a session')
    expect([pending.isEnding('a session'), pending.isEnding('another')]).toEqual([true, false])
    await pending.flush()
    expect([pending.count, pending.isEnding('a session')]).toEqual([0, true])
    show()
    await vi.waitFor(() => expect(pending.isEnding('a session')).toBe(false))
    pending.close()
  })

  it('are not retried after the queue is closed', async () => {
    const pending = pendingOver(createSessionStore(database))
    state.cut = true
    pending.add(sha256Hex('x'), true)
    pending.close()
    const before = state.statements
    await vi.advanceTimersByTimeAsync(10_000)
    expect(state.statements).toBe(before)
  })
})

describeWithServices('logouts of a user whose row is locked by another program', () => {
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  let program: Client
  let room: Room

  beforeAll(async () => {
    database = await postgresDatabase()
    program = new Client({ connectionString: database.url })
    await program.connect()
    room = await openRoom(database)
  })
  afterAll(async () => {
    room?.pendingRevocations.close()
    await program?.end()
    await database?.close()
  })

  const refresh = (token: string) => outcome(room.sessions.refresh(token))
  async function newSession(name: string) {
    const email = `${name}@example.com`
    const id = await room.register(email)
    return { id, token: (await room.accounts.login({ email, password })).refresh_token }
  }

  it('do not block the refreshes and logouts of other users', async () => {
    const [locked, other, third] = [
      await newSession('locked'),
      await newSession('other'),
      await newSession('third'),
    ]
    await program.query('begin')
    await program.query('select from users where id = $1 for update', [locked.id])
    await room.sessions.logout(locked.token)
    await vi.waitFor(() => expect(room.pendingRevocations.isHolding('another')).toBe(false), {
      timeout: 4_000,
    })
    expect(await refresh(other.token)).toBe('ok')
    expect(await refresh(locked.token)).toBe('service_unavailable')
    // Queues the logout directly, as if the store were down.
    room.pendingRevocations.add(sha256Hex(third.token), true, 'of the third')
    await vi.waitFor(() => expect(room.pendingRevocations.count).toBe(1), { timeout: 4_000 })
    expect(await refresh(third.token)).toBe('refresh_token_inactive')
    await program.query('commit')
    await vi.waitFor(() => expect(room.pendingRevocations.count).toBe(0), { timeout: 4_000 })
    expect(await refresh(locked.token)).toBe('refresh_token_inactive')
  })

  it('block the refreshes of all users if one queued token belongs to an unknown session', async () => {
    const [locked, other] = [await newSession('untold'), await newSession('told')]
    await program.query('begin')
    await program.query('select from users where id = $1 for update', [locked.id])
    await room.sessions.logout(locked.token)
    await vi.waitFor(() => expect(room.pendingRevocations.isHolding('another')).toBe(false), {
      timeout: 4_000,
    })
    room.pendingRevocations.add(sha256Hex(`${locked.token}x`), false)
    expect(room.pendingRevocations.isHolding('another')).toBe(true)
    await program.query('commit')
    expect(await refresh(other.token)).toBe('ok')
  })
})

describeWithPostgresBinary('logouts while Postgres is stopped', () => {
  let server: Server
  let database: PostgresDatabase
  let room: Room

  beforeAll(async () => {
    server = await startPostgres(inject('postgresBin'))
    database = openPostgres({ url: server.url, maxConnections: 5, onError: () => {} })
    await database.migrate()
    room = await openRoom(database)
  })
  afterAll(async () => {
    room?.pendingRevocations.close()
    await database?.close()
    await server?.stop()
  })

  it.each(['killed', 'frozen'])(
    'get a response within 2 s while Postgres is %s, and are stored when Postgres is back',
    async how => {
      const email = `${how}@example.com`
      await room.register(email)
      const [token, other] = [
        await room.accounts.login({ email, password }),
        await room.accounts.login({ email, password }),
      ]
      if (how === 'killed') await server.kill()
      else server.pause()
      const begun = performance.now()
      await room.sessions.logout(token.refresh_token)
      expect(performance.now() - begun).toBeLessThan(2000)
      expect(room.pendingRevocations.count).toBe(1)
      expect(await outcome(room.sessions.refresh(other.refresh_token))).toBe('service_unavailable')
      if (how === 'killed') await server.restart()
      else server.resume()
      await vi.waitFor(() => expect(room.pendingRevocations.count).toBe(0), { timeout: 10_000 })
      expect(await outcome(room.sessions.refresh(token.refresh_token))).toBe('refresh_token_inactive')
      expect(await outcome(room.sessions.refresh(other.refresh_token))).toBe('ok')
    },
  )
})
