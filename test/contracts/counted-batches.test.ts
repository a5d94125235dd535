// Tests that uses have the same results whether they are counted in a batch or one by one.

import fc from 'fast-check'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { createDailyCounter } from '../../src/usage/daily-counter.ts'
import { createUsageStore } from '../../src/usage/usage-store.ts'
import { postgresDatabase } from '../support/databases.ts'
import { runs } from '../support/property-runs.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

const TODAY = '2096-02-28'
/**
 * Returns a function that counts a use on `day`. The function resolves to the user's number of uses on this day,
 * including this use. If the use was refused, it resolves to undefined.
 */
function counterOf(database: Database, dailyLimit: number, day = TODAY) {
  const clock = { now: () => Date.parse(`${day}T12:00:00Z`) }
  const store = createUsageStore(database)
  const counter = createDailyCounter({ store, clock, dailyLimit, onFallback: () => {} })
  return async (userId: number) => {
    const use = await counter.use(userId)
    return use.counted ? use.used : undefined
  }
}

describeOnBothSetups('uses counted in a batch', ({ openDatabase: open }) => {
  let database: Database
  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database.close())

  it('are counted in the order of the calls, with the same results and records as uses counted one by one', async () => {
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
            const use = counterOf(database, limit)
            // A number in `turns` is the index of a user. Index 4 has no user, so the test uses an unknown ID for it.
            const calls = turns.map(turn => () => use(ids[turn] ?? 999_999_999))
            const counted: (number | undefined)[] = []
            if (isTogether) counted.push(...(await Promise.all(calls.map(call => call()))))
            else for (const call of calls) counted.push(await call())
            return { counted, records: await Promise.all(ids.map(createUsageStore(database).read)) }
          }
          expect(await answers(true)).toEqual(await answers(false))
        },
      ),
      { numRuns: runs(100) },
    )
  })

  it('are counted for the day of each use, even if a batch contains uses from before and after midnight', async () => {
    const clock = { time: Date.parse(`${TODAY}T23:59:59.999Z`), now: () => clock.time }
    const store = createUsageStore(database)
    const { use } = createDailyCounter({ store, clock, dailyLimit: 1, onFallback: () => {} })
    const [one, other] = [await addUser(database), await addUser(database)]
    const before = [use(one), use(other), use(other)]
    clock.time += 1
    const after = [use(one), use(one)]
    const counted = async (uses: typeof before) => (await Promise.all(uses)).map(use => use.counted)
    expect(await counted(before)).toEqual([true, true, false])
    expect(await counted(after)).toEqual([true, false])
    expect(await store.read(one)).toEqual({ daily_usage: 1, last_usage_date: '2096-02-29' })
  })
})

describeWithServices('uses counted in a batch on Postgres', () => {
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

  it('need fewer than one SQL statement per four uses if 48 clients run concurrently', async () => {
    const query = vi.fn(database.query)
    const use = counterOf({ ...database, query: query as Database['query'] }, 1_000)
    const ids = await Promise.all(Array.from({ length: 24 }, () => addUser(database)))
    const client = async (id: number) => {
      for (let turn = 0; turn < 50; turn += 1) await use(id)
    }
    await Promise.all([...ids, ...ids].map(client))
    expect(query.mock.calls.length).toBeLessThan((48 * 50) / 4)
    for (const id of ids)
      expect(await createUsageStore(database).read(id)).toMatchObject({ daily_usage: 100 })
  })

  it('can share one query plan for all batches, even if the table has many users', async () => {
    const replica = openPostgres({ url: database.url, maxConnections: 1, onError: () => {} })
    try {
      await database.query(`insert into users (email, password_hash) select 'many' || n || '@example.com', 'x'
        from generate_series(1, 5000) as n`)
      await database.query('analyze users')
      const store = createUsageStore(replica)
      const ids = [await addUser(database), await addUser(database)] as const
      // For each of the first five executions, Postgres makes a new plan. After that, Postgres may use a generic plan.
      for (let batch = 0; batch < 20; batch += 1) await store.count(ids, TODAY, 1_000)
      const planned = await replica.query(
        `select custom_plans::int, generic_plans::int from pg_prepared_statements where statement like '%unnest%'`,
      )
      expect(planned).toEqual([{ custom_plans: 5, generic_plans: 15 }])
    } finally {
      await replica.close()
    }
  })

  it.each([1, 20])(
    'reach exactly the limit of each user in 10,000 attempts on three replicas, and return each number up to the limit once (users: %d)',
    async count => {
      const limit = 50
      const replicas = [1, 2, 3].map(() =>
        openPostgres({ url: database.url, maxConnections: 5, onError: () => {} }),
      )
      try {
        const counters = replicas.map(replica => counterOf(replica, limit))
        const ids = await Promise.all(Array.from({ length: count }, () => addUser(database)))
        const numbers = new Map(ids.map(id => [id, [] as number[]]))
        const client = async (start: number) => {
          for (let turn = 0; turn < 100; turn += 1) {
            const id = ids[(start * 7 + turn) % ids.length] ?? 0
            const used = await counters[(start + turn) % 3]?.(id)
            if (used !== undefined) numbers.get(id)?.push(used)
          }
        }
        await Promise.all(Array.from({ length: 100 }, (_, start) => client(start)))
        const all = Array.from({ length: limit }, (_, index) => index + 1)
        for (const id of ids) expect(numbers.get(id)?.sort((a, b) => a - b)).toEqual(all)
      } finally {
        await Promise.all(replicas.map(replica => replica.close()))
      }
    },
  )

  it('wait for a locked row only if the row belongs to their own user', async () => {
    const use = counterOf(database, 1)
    const [locked, free] = [await addUser(database), await addUser(database)]
    await other.query('begin')
    await other.query('select from users where id = $1 for update', [locked])
    const waiting = [use(locked), use(locked)]
    let hasCounted = false
    void waiting[0]?.then(() => {
      hasCounted = true
    })
    expect(await Promise.all([use(free), use(free)])).toEqual([1, undefined])
    expect(hasCounted).toBe(false)
    await other.query('commit')
    expect(await Promise.all(waiting)).toEqual([1, undefined])
  })

  it('all fail if their batch fails, and uses in the next batch succeed', async () => {
    const use = counterOf(database, 5)
    const [first, second] = [await addUser(database), await addUser(database)]
    await other.query('begin')
    await other.query('lock table users')
    const failing = [use(first), use(second)]
    for (const failed of failing) await expect(failed).rejects.toMatchObject({ name: 'StorageError' })
    await other.query('commit')
    expect(await Promise.all([use(first), use(second)])).toEqual([1, 1])
    expect(await createUsageStore(database).read(first)).toMatchObject({ daily_usage: 1 })
  })
})
