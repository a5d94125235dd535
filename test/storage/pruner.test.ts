import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import { type Database, StorageError } from '../../src/storage/database.ts'
import { createPruner } from '../../src/storage/pruner.ts'
import { type MovableClock, movableClock } from '../accounts/setup.ts'
import { postgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

describeOverSetups('pruning', ({ openDatabase: open }) => {
  let database: Database
  let userId: number
  let clock: MovableClock

  beforeAll(async () => {
    database = await open()
    clock = movableClock()
    userId = await addUser(database)
  })
  afterAll(() => database.close())
  afterEach(async () => {
    vi.useRealTimers()
    await database.query('delete from refresh_tokens')
  })

  /** Adds `count` records that expire `expiresIn` milliseconds from now. */
  const add = (count: number, expiresIn: number) =>
    database.query(
      `insert into refresh_tokens (user_id, token_hash, expires_at)
       select $1, gen_random_uuid()::text, $2::timestamptz from generate_series(1, $3)`,
      [userId, new Date(clock.now() + expiresIn), count],
    )
  const left = async () => (await database.query('select 1 from refresh_tokens')).length
  const pruner = (onError = () => {}) =>
    createPruner({ pruneBatch: createSessionStore(database).prune, clock, onError })

  it('deletes every record when its `expires_at` is reached, and not earlier', async () => {
    await add(2500, 0)
    await add(3, -1000)
    await add(2, 1)
    const { prune, stop } = pruner()
    expect(await prune()).toBe(2503)
    expect(await left()).toBe(2)
    clock.advance(1)
    expect(await prune()).toBe(2)
    expect(await left()).toBe(0)
    stop()
  })

  it('runs shortly after the start and every ten minutes until it is stopped', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const rounds = vi.fn(createSessionStore(database).prune)
    const { stop } = createPruner({ pruneBatch: rounds, clock, onError: () => {} })
    const settled = () => Promise.allSettled(rounds.mock.results.map(({ value }) => value))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(rounds).toHaveBeenCalledTimes(1)
    for (const expected of [2, 3]) {
      await settled()
      await vi.advanceTimersByTimeAsync(10 * 60_000)
      expect(rounds).toHaveBeenCalledTimes(expected)
    }
    await settled()
    stop()
    await vi.advanceTimersByTimeAsync(60 * 60_000)
    expect(rounds).toHaveBeenCalledTimes(3)
  })

  it('continues after a failed round', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const failure = new StorageError('away', undefined, undefined)
    const onError = vi.fn()
    const prune = vi.fn(() => Promise.reject(failure))
    const { stop } = createPruner({ pruneBatch: prune, clock, onError })
    await vi.advanceTimersByTimeAsync(11 * 60_000)
    expect(prune).toHaveBeenCalledTimes(2)
    expect(onError).toHaveBeenCalledWith(failure)
    stop()
  })
})

describeWithServices('pruning while a transaction has locked a record', () => {
  it('skips the record without waiting, and deletes the record in the next round', async () => {
    const database = await postgresDatabase()
    const { prune, stop } = createPruner({
      pruneBatch: createSessionStore(database).prune,
      clock: movableClock(),
      onError: () => {},
    })
    const userId = await addUser(database)
    await database.query(
      `insert into refresh_tokens (user_id, token_hash, expires_at)
       select $1, gen_random_uuid()::text, now() - interval '1 hour' from generate_series(1, 2)`,
      [userId],
    )
    await database.transaction(async tx => {
      await tx.query('select 1 from refresh_tokens limit 1 for update')
      expect(await prune()).toBe(1)
    })
    expect(await prune()).toBe(1)
    stop()
    await database.close()
  })
})
