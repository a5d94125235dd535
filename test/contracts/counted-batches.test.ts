// Uses counted together: the same answers as one by one, whatever is locked, lost or counted beside them.
import fc from 'fast-check'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { createUsageStore, type UsageRecord } from '../../src/usage/usage-store.ts'
import { describeOverDatabases, postgresDatabase } from '../support/databases.ts'
import { describeWithPostgres } from '../support/services.ts'

const TODAY = '2096-02-28'
let users = 0

async function addUser(database: Database, { daily_usage, last_usage_date }: UsageRecord = unused) {
  users += 1
  const [row] = await database.query<{ id: number }>(
    `insert into users (email, password_hash, daily_usage, last_usage_date) values ($1, 'x', $2, $3) returning id`,
    [`batch${users}@example.com`, daily_usage, last_usage_date],
  )
  return row?.id ?? expect.unreachable()
}

const unused: UsageRecord = { daily_usage: 0, last_usage_date: null }

describeOverDatabases('uses counted together', open => {
  let database: Database
  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database.close())

  it('have the answers and leave the record of uses counted one by one, in the order of their calls', async () => {
    const record = fc.record({
      daily_usage: fc.nat(4),
      last_usage_date: fc.constantFrom(null, '2020-01-01', '2096-02-27', TODAY, '2096-02-29', '2096-03-01'),
    })
    const uses = fc.array(fc.nat(4), { minLength: 2, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { minLength: 4, maxLength: 4 }),
        uses,
        fc.nat(4),
        async (records, turns, limit) => {
          const answers = async (isTogether: boolean) => {
            const ids = await Promise.all(records.map(record => addUser(database, record)))
            const { count, read } = createUsageStore(database)
            // The fifth does not exist.
            const calls = turns.map(turn => () => count(ids[turn] ?? 999_999_999, TODAY, limit))
            const counted: (number | undefined)[] = []
            if (isTogether) counted.push(...(await Promise.all(calls.map(call => call()))))
            else for (const call of calls) counted.push(await call())
            return { counted, records: await Promise.all(ids.map(read)) }
          }
          expect(await answers(true)).toEqual(await answers(false))
        },
      ),
      { numRuns: 100 },
    )
  })

  it('of two days or limits are each counted by their own', async () => {
    const { count } = createUsageStore(database)
    const [one, other] = [await addUser(database), await addUser(database)]
    expect(
      await Promise.all([
        count(one, TODAY, 1),
        count(other, TODAY, 1),
        count(other, TODAY, 2),
        count(one, '2096-02-29', 1),
        count(one, '2096-02-29', 1),
      ]),
    ).toEqual([1, 1, 2, 1, undefined])
  })
})

describeWithPostgres('uses counted together on Postgres', () => {
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  let other: Client
  beforeAll(async () => {
    database = await postgresDatabase()
    other = new Client({ connectionString: database.url })
    await other.connect()
  })
  afterAll(async () => {
    await other.end()
    await database.close()
  })

  it('48 at a time take at most a quarter of as many statements', async () => {
    const query = vi.fn(database.query)
    const { count } = createUsageStore({ ...database, query: query as Database['query'] })
    const ids = await Promise.all(Array.from({ length: 24 }, () => addUser(database)))
    const client = async (id: number) => {
      for (let turn = 0; turn < 50; turn += 1) await count(id, TODAY, 1_000)
    }
    await Promise.all([...ids, ...ids].map(client))
    expect(query.mock.calls.length).toBeLessThan((48 * 50) / 4)
    for (const id of ids)
      expect(await createUsageStore(database).read(id)).toMatchObject({ daily_usage: 100 })
  })

  it('10,000 over three replicas give each user exactly the limit, and each use its own number', async () => {
    const limit = 50
    const replicas = [1, 2, 3].map(() =>
      openPostgres({ url: database.url, maxConnections: 5, onError: () => {} }),
    )
    try {
      const stores = replicas.map(createUsageStore)
      const ids = await Promise.all(Array.from({ length: 20 }, () => addUser(database)))
      const numbers = new Map(ids.map(id => [id, [] as number[]]))
      const client = async (start: number) => {
        for (let turn = 0; turn < 100; turn += 1) {
          const id = ids[(start * 7 + turn) % ids.length] ?? 0
          const used = await stores[(start + turn) % 3]?.count(id, TODAY, limit)
          if (used !== undefined) numbers.get(id)?.push(used)
        }
      }
      await Promise.all(Array.from({ length: 100 }, (_, start) => client(start)))
      const all = Array.from({ length: limit }, (_, index) => index + 1)
      for (const id of ids) expect(numbers.get(id)?.sort((a, b) => a - b)).toEqual(all)
    } finally {
      await Promise.all(replicas.map(replica => replica.close()))
    }
  })

  it('a locked row delays the uses of its own user alone', async () => {
    const { count } = createUsageStore(database)
    const [locked, free] = [await addUser(database), await addUser(database)]
    await other.query('begin')
    await other.query('select from users where id = $1 for update', [locked])
    const waiting = [count(locked, TODAY, 1), count(locked, TODAY, 1)]
    let hasCounted = false
    void waiting[0]?.then(() => {
      hasCounted = true
    })
    expect(await Promise.all([count(free, TODAY, 1), count(free, TODAY, 1)])).toEqual([1, undefined])
    expect(hasCounted).toBe(false)
    await other.query('commit')
    expect((await Promise.all(waiting)).toSorted()).toEqual([1, undefined])
  })

  it('a batch that fails fails for its own uses, and not for the next', async () => {
    const { count, read } = createUsageStore(database)
    const [first, second] = [await addUser(database), await addUser(database)]
    await other.query('begin')
    await other.query('lock table users')
    const failing = [count(first, TODAY, 5), count(second, TODAY, 5)]
    for (const use of failing) await expect(use).rejects.toMatchObject({ name: 'StorageError' })
    await other.query('commit')
    expect(await Promise.all([count(first, TODAY, 5), count(second, TODAY, 5)])).toEqual([1, 1])
    expect(await read(first)).toMatchObject({ daily_usage: 1 })
  })
})
