// Tests on both kinds of database how the records of quotas are read, counted and pruned.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createQuotaCounter } from '../../src/usage/quota-count-store.ts'
import { createQuotaRecordStore } from '../../src/usage/quota-record-store.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { textOf } from '../support/gateway.ts'
import { describeOnBothSetups } from '../support/setups.ts'

describeOnBothSetups('the records of quotas', setup => {
  let database: Database
  beforeAll(async () => {
    database = await setup.openDatabase()
  })
  afterAll(() => database?.close())

  async function newUser(email: string): Promise<number> {
    const created = await createUserStore(database).create(email, 'x')
    if (created.outcome !== 'created') return expect.unreachable()
    return created.id
  }

  it('are read once for all concurrent calls for one user, and read again for later calls, even after a failed read', async () => {
    const [first, second] = [await newUser('first@example.com'), await newUser('second@example.com')]
    let reads = 0
    let isDown = false
    const { read } = createQuotaRecordStore({
      ...database,
      async query(sql, values) {
        if (textOf(sql).includes('quota_usage')) reads += 1
        if (isDown) throw new Error('down')
        return database.query(sql, values)
      },
    })
    const many = await Promise.all(Array.from({ length: 20 }, (_, i) => read(i % 2 === 0 ? first : second)))
    expect([reads, many.length]).toEqual([2, 20])
    isDown = true
    await expect(read(first)).rejects.toThrow('down')
    isDown = false
    await database.query(
      `insert into quota_usage values ($1, 'exports', 'day', (now() at time zone 'utc')::date, 7)`,
      [first],
    )
    expect((await read(first)).uses).toEqual([{ quota: 'exports', period: 'day', used: 7, isAhead: false }])
  })

  it('do not allow a use with a cost above the limit, even before the first use', async () => {
    const userId = await newUser('costly@example.com')
    const { use } = createQuotaCounter(database)
    const costly = { userId, quota: 'exports', period: 'day', limit: 2, cost: 3 } as const
    for (let i = 0; i < 2; i++) expect(await use(costly)).toMatchObject({ counted: false, used: 0 })
    expect(await use({ ...costly, cost: 2 })).toMatchObject({ counted: true, used: 2 })
  })

  it('are pruned in batches if their period ended more than one day ago according to the clock of the database', async () => {
    const user = await newUser('pruned@example.com')
    await database.query('delete from quota_usage')
    const day = (days: number) => [`day${days}`, 'day', `date_trunc('day', at) + interval '${days} days'`]
    const month = (months: number) => [
      `month${months}`,
      'month',
      `date_trunc('month', at) + interval '${months} months'`,
    ]
    for (const [quota, period, start] of [
      ...[-40, -3, -2, -1, 0, 1, 3].map(day),
      ...[-3, -2, 0, 1].map(month),
    ])
      await database.query(
        `insert into quota_usage select $1, replace($2, '-', '_'), $3, ${start}, 1
           from (select now() at time zone 'utc' as at) as clock`,
        [user, quota, period],
      )
    const { prune } = createQuotaRecordStore(database)
    expect([await prune(2), await prune(100), await prune(100)]).toEqual([4, 1, 0])
    const left = await database.query('select quota from quota_usage order by quota')
    expect(left).toEqual(['day0', 'day1', 'day3', 'day_1', 'month0', 'month1'].map(quota => ({ quota })))
  })
})
