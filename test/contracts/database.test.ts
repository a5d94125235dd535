// Tests the contract of `Database` on the embedded database and on Postgres.

import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Database, StorageError } from '../../src/storage/database.ts'
import { describeOnBothSetups } from '../support/setups.ts'

describeOnBothSetups('the database', ({ openDatabase: open }) => {
  let database: Database

  beforeAll(async () => {
    database = await open()
    await database.query(
      'create table things (id bigint primary key, name text unique, n integer not null default 0)',
    )
  })
  afterAll(() => database.close())

  const failureOf = (attempt: Promise<unknown>): Promise<StorageError> =>
    attempt.then(
      () => expect.unreachable('the statement did not fail'),
      error => error,
    )

  describe('values', () => {
    it('a bigint is returned as a number, even if it is the highest possible ID', async () => {
      const rows = await database.query(
        'select 9007199254740991::bigint as id, count(*) as n from things where id = -1',
      )
      expect(rows).toEqual([{ id: 9007199254740991, n: 0 }])
    })

    it('a date is returned as the stored text, whatever the time zone', async () => {
      expect(await database.query('select $1::date as day', ['2024-02-29'])).toEqual([{ day: '2024-02-29' }])
    })

    it('a timestamp is returned as a `Date` with the same time', async () => {
      const at = new Date('2024-02-29T23:59:59.123Z')
      expect(await database.query('select $1::timestamptz as at', [at])).toEqual([{ at }])
    })

    it('null, boolean, smallint, integer and text are returned unchanged', async () => {
      const [row] = await database.query(
        "select null::bigint as a, null::date as b, true as c, 1::smallint as d, 2 as e, 'é\u{1f6a7}' as f",
      )
      expect(row).toEqual({ a: null, b: null, c: true, d: 1, e: 2, f: 'é\u{1f6a7}' })
    })

    it('a parameter reaches the database unchanged if it is a number, a text, a boolean or null', async () => {
      const [row] = await database.query(
        'select $1::bigint as a, $2::text as b, $3::boolean as c, $4::date as d',
        [9007199254740991, "'; drop table things --", false, null],
      )
      expect(row).toEqual({ a: 9007199254740991, b: "'; drop table things --", c: false, d: null })
    })
  })

  describe('a failed statement', () => {
    it('has the SQLSTATE 23505 if it violates a unique key, but not if it violates another constraint', async () => {
      await database.query("insert into things (id, name) values (1, 'one')")
      const error = await failureOf(database.query("insert into things (id, name) values (2, 'one')"))
      expect(error).toBeInstanceOf(StorageError)
      expect(error.code).toBe('23505')
      const other = await failureOf(database.query('insert into things (id, n) values (3, null)'))
      expect(other.code).toBe('23502')
    })

    it.each([
      ['22P02', 'select $1::int', ['secret-value']],
      ['22021', 'select $1::text', ['secret-value\0']],
      ['23505', "insert into things (id, name) select v, 'secret-value' from generate_series(10, 11) v", []],
      ['42P01', 'select $1::text from nowhere', ['secret-value']],
      ['57014', "do $$ begin raise exception using errcode = '57014'; end $$", []],
    ])(
      'causes an error with the SQLSTATE %s, and the error contains no value of the statement',
      async (code, sql, values) => {
        const error = await failureOf(database.query(sql, values))
        expect(error).toBeInstanceOf(StorageError)
        expect(error.code).toBe(code)
        expect(inspect(error, { depth: null, showHidden: true })).not.toContain('secret-value')
      },
    )

    it('does not affect the next statement', async () => {
      await failureOf(database.query('select * from nowhere'))
      expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
    })
  })

  describe('a transaction', () => {
    it('commits when its callback resolves, and returns the result of the callback', async () => {
      const result = await database.transaction(async tx => {
        await tx.query("insert into things (id, name) values (20, 'twenty')")
        await tx.query("insert into things (id, name) values (21, 'twenty-one')")
        return 'done'
      })
      expect(result).toBe('done')
      expect(await database.query('select id from things where id in (20, 21)')).toHaveLength(2)
    })

    it('rolls back when its callback throws, and rethrows the error', async () => {
      const thrown = new Error('no')
      const work = database.transaction(async tx => {
        await tx.query('insert into things (id) values (30)')
        throw thrown
      })
      expect(await failureOf(work)).toBe(thrown)
      expect(await database.query('select id from things where id = 30')).toEqual([])
    })

    it('rolls back when a statement fails, and rethrows the StorageError', async () => {
      const work = database.transaction(async tx => {
        await tx.query('insert into things (id) values (40)')
        await tx.query('insert into things (id) values (40)')
      })
      expect((await failureOf(work)).code).toBe('23505')
      expect(await database.query('select id from things where id = 40')).toEqual([])
    })

    it('is rejected if a statement failed, even if the callback ignored the error', async () => {
      const work = database.transaction(async tx => {
        await tx.query('insert into things (id) values (50)')
        await tx.query('select * from nowhere').catch(() => {})
      })
      const error = await failureOf(work)
      expect(error).toBeInstanceOf(StorageError)
      expect(error.code).toBe('25P02')
      expect(await database.query('select id from things where id = 50')).toEqual([])
    })

    it('fails with a StorageError if the commit is refused', async () => {
      await database.query('create table late (id int unique deferrable initially deferred)')
      const work = database.transaction(tx =>
        tx.query('insert into late select 1 from generate_series(1, 2)'),
      )
      expect((await failureOf(work)).code).toBe('23505')
      expect(await database.query('select * from late')).toEqual([])
    })

    it('returns its connection to the pool if it fails', async () => {
      for (let round = 0; round < 25; round += 1) {
        await failureOf(database.transaction(tx => tx.query('select * from nowhere')))
      }
      expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
    })
  })

  describe('concurrent calls', () => {
    it('succeed exactly as often as the condition of their update allows', async () => {
      await database.query('insert into things (id) values (60)')
      const passes = await Promise.all(
        Array.from({ length: 40 }, () =>
          database.query('update things set n = n + 1 where id = 60 and n < 3 returning n'),
        ),
      )
      expect(passes.flat()).toHaveLength(3)
      expect(await database.query('select n from things where id = 60')).toEqual([{ n: 3 }])
    })

    it('run in isolated transactions, so a rollback of one transaction does not affect the others', async () => {
      await database.query('insert into things (id) values (70)')
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, turn) =>
          database.transaction(async tx => {
            await tx.query('update things set n = n + 1 where id = 70')
            if (turn % 2 === 1) throw new Error('undone')
          }),
        ),
      )
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
      expect(await database.query('select n from things where id = 70')).toEqual([{ n: 10 }])
    })
  })

  it('can be closed more than once, and queries fail with a StorageError afterwards', async () => {
    const other = await open()
    await other.close()
    await other.close()
    expect(await failureOf(other.query('select 1'))).toBeInstanceOf(StorageError)
    expect(await failureOf(other.transaction(tx => tx.query('select 1')))).toBeInstanceOf(StorageError)
  })
})
