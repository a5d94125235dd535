// Tests `peage users export` for all users: the printed lines, the consistent snapshot, and whether an import restores
// the same users.
import { Writable } from 'node:stream'
import { beforeEach, expect, it } from 'vitest'
import type { Queryable } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { describeWithServices } from '../support/services.ts'
import { runIn } from './peage.ts'
import { bcryptHash, faultsOf, importsOf } from './users-import-setup.ts'
import { describeOnBothPlaces, postgresPlace } from './users-setup.ts'

/** The number of users. The export reads them in several pages, and the last page is not full. */
const many = 1_101

/** Stores users with different values. Some of the values are not part of an export, for example `session_epoch`. */
async function fill(database: Queryable): Promise<void> {
  await database.query(
    `insert into users (id, email, password_hash, plan, is_active, daily_usage, last_usage_date, session_epoch,
                        created_at, email_verified_at)
     overriding system value
     select n * 3, 'user' || n || E'"\\\\é@example.com', case n % 3 when 0 then '!' else $2 end,
            (array['free', 'premium', 'pro'])[1 + n % 3], n % 2, 1, '2024-01-31', 1,
            timestamptz '2020-01-01 00:00:00Z' + n * interval '3601.234567 s', case n % 5 when 0 then now() end
       from generate_series($1::integer, 1, -1) n`,
    [many, bcryptHash],
  )
  await database.query('insert into subscriptions (user_id, plan) select id, plan from users')
  await database.query(
    `insert into identities (issuer, sub, user_id, email)
     select 'https://id' || i, id || 'ü', id, case i when 1 then email end
       from users, generate_series(1, 2) i where id % 7 = 0`,
  )
}

/** Returns checksums of everything that an export contains. Times are truncated to milliseconds. */
async function checksum(database: Queryable): Promise<unknown> {
  const [users] = await database.query(
    `select count(*) as users, md5(string_agg(concat_ws('|', u.id, u.email, u.password_hash, u.plan, s.plan, u.is_active,
              u.email_verified_at is not null, date_trunc('milliseconds', u.created_at at time zone 'utc')), E'\\n'
              order by u.id)) as md5
       from users u join subscriptions s on s.user_id = u.id`,
  )
  const [identities] = await database.query(
    `select count(*) as identities, md5(string_agg(concat_ws('|', issuer, sub, user_id, coalesce(email, '-')), E'\\n'
              order by user_id, issuer)) as md5
       from identities`,
  )
  return { users, identities }
}

describeOnBothPlaces('peage users export', place => {
  const { users, inside } = place
  const { importLines, clear } = importsOf(place)
  beforeEach(clear)
  const lines = (text: string) => text.split('\n').slice(0, -1)

  it('prints all users as JSON Lines in the order of their ids, without hashes', async () => {
    await inside(fill)
    const { exit, stdout, stderr } = await users(['export'])
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
    const printed = lines(stdout).map(line => JSON.parse(line))
    expect(printed.map(({ id }) => id)).toEqual(Array.from({ length: many }, (_, n) => 3 * (n + 1)))
    expect(printed[6]).toEqual({
      ...{ id: 21, email: 'user7"\\é@example.com', plan: 'premium', email_verified: false, is_active: true },
      created_at: '2020-01-01T07:00:08.641Z',
      identities: [
        { issuer: 'https://id1', sub: '21ü', email: 'user7"\\é@example.com' },
        { issuer: 'https://id2', sub: '21ü', email: null },
      ],
    })
    expect(printed[0]).not.toHaveProperty('identities')
    expect(stdout).not.toContain('hash')
  })

  it('prints nothing if there are no users', async () => {
    expect(await users(['export'])).toEqual({ exit: 0, stdout: '', stderr: '' })
  })

  it('with --hashes, prints lines that restore the same users if they are imported into an empty database', async () => {
    await inside(fill)
    const before = await inside(checksum)
    const { stdout, stderr } = await users(['export', '--hashes'])
    expect(stderr).toBe('')
    await clear()
    const imported = await importLines(stdout)
    expect(imported).toEqual({
      exit: 0,
      stdout: `${many} read, ${many} created, 0 skipped, 0 faults\n`,
      stderr: '',
    })
    expect(await inside(checksum)).toEqual(before)
    expect((await users(['export', '--hashes'])).stdout).toBe(stdout)
    const kept = await inside(database =>
      database.query(
        'select 1 from users where daily_usage > 0 or last_usage_date is not null or session_epoch > 0',
      ),
    )
    expect(kept).toEqual([])
  })

  it('prints users with an unconfigured plan or an unknown hash, and an import reports these users as faults', async () => {
    await inside(database =>
      database.query(
        `insert into users (email, password_hash, plan)
         values ('a@example.com', '!', 'old'), ('b@example.com', 'x', 'free'), ('c@example.com', '!', 'free')`,
      ),
    )
    const { stdout } = await users(['export', '--hashes'])
    await clear()
    const imported = await importLines(stdout)
    expect(imported.stdout).toBe('3 read, 1 created, 0 skipped, 2 faults\n')
    expect(faultsOf(imported).map(fault => fault.split('  ').slice(0, 2))).toEqual([
      ['1', 'plan'],
      ['2', 'password_hash'],
    ])
  })

  it('writes one audit entry per export, with the operator `cli`', async () => {
    await users(['export'])
    await users(['export', '--hashes'])
    const entries = await inside(database =>
      database.query(
        'select operator, channel, user_id, method, route, changes, status from admin_audit order by id',
      ),
    )
    const entry = { operator: 'cli', channel: 'cli', user_id: null, method: 'GET', status: 200 }
    expect(entries).toEqual(
      [false, true].map(hashes => ({ ...entry, route: '/admin/v1/users/:id/export', changes: { hashes } })),
    )
  })

  it('exits with 2 if --hashes is used with a single user', async () => {
    const { exit, stderr } = await users(['export', '1', '--hashes'])
    expect({ exit, stderr }).toEqual({
      exit: 2,
      stderr: 'error: --hashes cannot be used with a user; omit one of them\n',
    })
  })
})

describeWithServices('peage users export to a stream', () => {
  const place = postgresPlace()
  const { clear } = importsOf(place)
  beforeEach(async () => {
    await clear()
    await place.inside(fill)
  })

  class Output extends Writable {
    isTTY = false
    text = ''
    readonly onWrite: (text: string) => Promise<void>
    constructor(onWrite: (text: string) => Promise<void> = async () => {}) {
      super()
      this.onWrite = onWrite
    }
    override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void) {
      this.text += chunk
      this.onWrite(this.text).then(() => done(), done)
    }
  }

  it('warns about --hashes if standard output is a terminal', async () => {
    for (const words of [['export'], ['export', '--hashes']]) {
      for (const isTTY of [false, true]) {
        const stdout = new Output()
        stdout.isTTY = isTTY
        const { exit, stderr } = await runIn(place.cwd, ['users', ...words], { stdout })
        expect({ exit, stderr }).toEqual({
          exit: 0,
          stderr:
            isTTY && words.length > 1
              ? 'warning: password hashes are printed to the terminal; write them to a protected file\n'
              : '',
        })
      }
    }
  })

  it('prints no change that is made after the start of the export', async () => {
    const { postgres = '' } = place.configuration()
    const other = openPostgres({ url: postgres, maxConnections: 1, onError: () => {} })
    let writes = 0
    const stdout = new Output(async () => {
      writes += 1
      await other.query(
        "insert into users (id, email, password_hash) overriding system value values ($1::bigint, 'late' || $1, '!')",
        [4 * many + writes],
      )
      await other.query('delete from users where id = $1', [3 * many])
    })
    expect(await runIn(place.cwd, ['users', 'export'], { stdout })).toMatchObject({ exit: 0, stderr: '' })
    await other.close()
    const ids = stdout.text
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line).id)
    expect(writes).toBe(3)
    expect(ids).toEqual(Array.from({ length: many }, (_, n) => 3 * (n + 1)))
  })

  it('ends without an error if the reader closes the pipe', async () => {
    const stdout = new Output(async () => {
      throw Object.assign(new Error('closed'), { code: 'EPIPE' })
    })
    expect(await runIn(place.cwd, ['users', 'export'], { stdout })).toEqual({
      exit: 0,
      stdout: '',
      stderr: '',
    })
  })
})
