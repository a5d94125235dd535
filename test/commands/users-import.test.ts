// Tests what `peage users import` stores, skips and refuses, on both databases.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { gatewayPlace } from './users-doors.ts'
import { bcryptHash, faultsOf, importsOf, jsonLines, summary } from './users-import-setup.ts'
import { describeOnBothPlaces, writeConfiguration } from './users-setup.ts'

const numbered = (count: number, first = 1) =>
  Array.from({ length: count }, (_, n) => ({ email: `user${first + n}@example.com` }))
const issuer = 'https://id.example'

describeOnBothPlaces('peage users import', place => {
  const { users, inside, cwd } = place
  const { importJson, importLines, importCsv, clear, emails } = importsOf(place)
  beforeEach(clear)

  describe('a user', () => {
    it('with only an email gets the default values, and a subscription as after a registration', async () => {
      const before = Date.now()
      expect(await importJson([{ email: '  Ada@Example.com ' }])).toEqual(summary(1, 1))
      const [row] = await inside(database =>
        database.query<{ created_at: Date; subscribed_at: Date }>(
          `select u.*, s.plan as subscribed, s.created_at as subscribed_at from users u join subscriptions s on s.user_id = u.id`,
        ),
      )
      expect(row).toMatchObject({
        ...{ id: 1, email: 'ada@example.com', password_hash: '!', plan: 'free', subscribed: 'free' },
        ...{ is_active: 1, email_verified_at: null, daily_usage: 0, last_usage_date: null, session_epoch: 0 },
      })
      for (const time of [row?.created_at, row?.subscribed_at])
        expect(time?.getTime()).toBeGreaterThanOrEqual(before - 1_000)
    })

    it('is stored with every given value', async () => {
      const identities = [
        { issuer, sub: 'a"\\,{}NULL', email: ' ADA@id.example' },
        { issuer: 'https://other.example', sub: 'null' },
      ]
      const given = {
        ...{
          email: 'ada@example.com',
          id: 4711,
          password_hash: bcryptHash,
          plan: 'pro',
          email_verified: true,
        },
        ...{ is_active: false, created_at: '2024-01-31T12:00:00.1239+02:00', identities },
      }
      expect(await importJson([given])).toEqual(summary(1, 1))
      const rows = await inside(database =>
        database.query(
          `select u.id, u.password_hash, u.plan, s.plan as subscribed, u.is_active, u.created_at,
                  u.email_verified_at > now() - interval '1 minute' as is_verified
             from users u join subscriptions s on s.user_id = u.id`,
        ),
      )
      expect(rows).toEqual([
        {
          ...{ id: 4711, password_hash: bcryptHash, plan: 'pro', subscribed: 'pro', is_active: 0 },
          ...{ created_at: new Date('2024-01-31T10:00:00.123Z'), is_verified: true },
        },
      ])
      const stored = await inside(database =>
        database.query('select issuer, sub, email, user_id, last_used_at from identities order by issuer'),
      )
      expect(stored).toEqual([
        { issuer, sub: 'a"\\,{}NULL', email: 'ada@id.example', user_id: 4711, last_used_at: null },
        { issuer: 'https://other.example', sub: 'null', email: null, user_id: 4711, last_used_at: null },
      ])
    })

    it('gets no mail, even if mails are configured', async () => {
      writeConfiguration(cwd, { ...place.configuration(), name: 'mail.yaml', admin: withMail })
      expect(
        await users(['import', '-', '--format', 'jsonl', '-c', 'mail.yaml'], jsonLines(numbered(2))),
      ).toEqual(summary(2, 2))
      expect(await inside(database => database.query('select 1 from mails'))).toEqual([])
    })
  })

  describe('an email that exists already', () => {
    const again = [{ email: 'A@example.com' }, { email: 'b@example.com' }, { email: 'B@example.com' }]
    beforeEach(() => importJson([{ email: 'a@example.com' }]))

    it('is skipped, whether it is in the database or on an earlier line', async () => {
      expect(await importJson(again)).toEqual(summary(3, 1, 2))
      expect(await emails()).toEqual(['a@example.com', 'b@example.com'])
    })

    it('is reported as a fault with --on-conflict fail', async () => {
      const printed = await importJson(again, '--on-conflict', 'fail')
      expect(printed).toMatchObject({ exit: 1, stdout: '3 read, 1 created, 0 skipped, 2 faults\n' })
      expect(faultsOf(printed)).toEqual(
        [1, 3].map(
          line =>
            `${line}  email  A user with this email already exists. If it is the same user, use --on-conflict skip. Otherwise, remove one of them.`,
        ),
      )
    })

    it('is skipped without a check of its id and identities, so an import can be repeated', async () => {
      const given = numbered(3).map((user, n) => ({
        ...user,
        id: n + 10,
        identities: [{ issuer, sub: `${n}` }],
      }))
      expect(await importJson(given)).toEqual(summary(3, 3))
      expect(await importJson(given)).toEqual(summary(3, 0, 3))
    })

    it('is accepted if it exists only on an earlier line that has a fault', async () => {
      const [first] = await inside(database => database.query<{ id: number }>('select id from users'))
      const printed = await importJson([
        { email: 'c@example.com', id: first?.id },
        { email: 'c@example.com' },
      ])
      expect(printed.stdout).toBe('2 read, 1 created, 0 skipped, 1 faults\n')
    })
  })

  describe('an id', () => {
    const assigned = async () => {
      await importJson([{ email: 'assigned@example.com' }])
      return inside(database => database.query("select id from users where email = 'assigned@example.com'"))
    }

    it('is reported as a fault if another user has this id', async () => {
      const printed = await importJson([
        { email: 'a@example.com', id: 7 },
        { email: 'b@example.com', id: 7 },
        { email: 'c@example.com' },
      ])
      expect(printed.stdout).toBe('3 read, 2 created, 0 skipped, 1 faults\n')
      expect(faultsOf(printed)).toEqual(['2  id  Another user has this ID. Omit it, or use a free ID.'])
      expect(faultsOf(await importJson([{ email: 'd@example.com', id: 7 }]))).toHaveLength(1)
    })

    it.each([1, 2, 1_000_000])('with the value %i moves the id sequence past this value', async id => {
      expect(await importJson([{ email: 'a@example.com', id }])).toEqual(summary(1, 1))
      expect(await assigned()).toEqual([{ id: id + 1 }])
    })

    it('never moves the id sequence back', async () => {
      await importJson([{ email: 'a@example.com', id: 100 }])
      await importJson([{ email: 'b@example.com', id: 50 }])
      expect(await assigned()).toEqual([{ id: 101 }])
    })

    it('does not move the id sequence if its user is not created', async () => {
      await importJson([{ email: 'a@example.com' }])
      expect(await importJson([{ email: 'a@example.com', id: 9_000 }])).toEqual(summary(1, 0, 1))
      expect(await assigned()).toEqual([{ id: 2 }])
    })

    it('is assigned in file order to users without an id, above the largest given id', async () => {
      await importJson([
        { email: 'z@example.com' },
        { email: 'm@example.com', id: 5 },
        { email: 'a@example.com' },
      ])
      const rows = await inside(database => database.query('select id, email from users order by id'))
      expect(rows).toEqual([
        { id: 5, email: 'm@example.com' },
        { id: 6, email: 'z@example.com' },
        { id: 7, email: 'a@example.com' },
      ])
    })

    it('can be the largest allowed id', async () => {
      expect(await importJson([{ email: 'a@example.com', id: 2 ** 53 - 1 }])).toEqual(summary(1, 1))
    })
  })

  it('reports a fault if another user has the identity, and creates the other users of the file', async () => {
    const identities = [{ issuer, sub: '1' }]
    const printed = await importJson([
      { email: 'a@example.com', identities },
      { email: 'b@example.com', identities },
      { email: 'c@example.com', identities: [{ issuer, sub: '2' }] },
    ])
    expect(printed.stdout).toBe('3 read, 2 created, 0 skipped, 1 faults\n')
    const fault =
      'identities  Another user has one of these identities. Remove the identity from one of the two users.'
    expect(faultsOf(printed)).toEqual([`2  ${fault}`])
    expect(await emails()).toEqual(['a@example.com', 'c@example.com'])
    expect(faultsOf(await importJson([{ email: 'd@example.com', identities }]))).toEqual([`1  ${fault}`])
  })

  describe('the transactions', () => {
    it('store at most 500 users each, and write one audit entry with the operator `cli` if they store a user', async () => {
      const entries = () =>
        inside(database =>
          database.query(
            'select operator, channel, user_id, method, route, changes, status from admin_audit order by id',
          ),
        )
      expect(await importJson(numbered(1_001))).toEqual(summary(1_001, 1_001))
      const entry = {
        operator: 'cli',
        channel: 'cli',
        user_id: null,
        method: 'POST',
        route: '/admin/v1/users',
      }
      const expected = [500, 500, 1].map(imported => ({ ...entry, changes: { imported }, status: 201 }))
      expect(await entries()).toEqual(expected)
      expect(await importJson(numbered(1_001))).toEqual(summary(1_001, 0, 1_001))
      expect(await entries()).toEqual(expected)
    })

    it('are counted in the summary if they were committed before the database failed', async () => {
      await inside(database =>
        database.query("alter table users add constraint refused check (email !~ 'user700@')"),
      )
      const printed = await importJson(numbered(1_200))
      await inside(database => database.query('alter table users drop constraint refused'))
      expect(printed).toMatchObject({ exit: 1, stdout: '500 read, 500 created, 0 skipped, 0 faults\n' })
      expect(printed.stderr).toMatch(/^error: the .*database .*failed \(error 23514/)
      expect(await emails()).toHaveLength(500)
      expect(await importJson(numbered(1_200))).toEqual(summary(1_200, 700, 500))
    })
  })

  describe('--dry-run', () => {
    it('counts the users that an import would create, finds every conflict, and writes nothing', async () => {
      await importJson([{ email: 'old@example.com', id: 3, identities: [{ issuer, sub: '1' }] }])
      const given = [
        ...numbered(600).map((user, n) => ({ ...user, identities: [{ issuer, sub: `sub${n}` }] })),
        { email: 'old@example.com' },
        { email: 'user1@example.com' },
        { email: 'a@example.com', id: 3 },
        // This id is a conflict, because an import would assign it to the second user.
        { email: 'b@example.com', id: 5 },
        { email: 'c@example.com', identities: [{ issuer, sub: '1' }] },
        { email: 'd@example.com', identities: [{ issuer, sub: 'sub0' }] },
        { email: 'e@example.com', id: 10_000 },
        { email: 'f@example.com', id: 10_000 },
        { email: 'no email' },
      ]
      const tables = () =>
        inside(async database => {
          const counted = []
          for (const table of ['users', 'subscriptions', 'identities', 'admin_audit', 'events'])
            counted.push(await database.query(`select count(*) as rows from ${table}`))
          return [...counted, await database.query('select last_value, is_called from users_id_seq')]
        })
      const before = await tables()
      const tried = await importJson(given, '--dry-run')
      expect(tried).toMatchObject({ exit: 1, stdout: '609 read, 601 created, 2 skipped, 6 faults\n' })
      expect(await tables()).toEqual(before)
      expect(await importJson(given)).toEqual(tried)
    })
  })

  describe('--events', () => {
    const events = (more = '') => `events: { url: 'https://service.example/', secret: ${eventSecret}${more} }`
    const importWithEvents = (admin: string) => {
      const file = writeConfiguration(cwd, { ...place.configuration(), name: 'events.yaml', admin })
      return users(['import', '-', '--format', 'jsonl', '--events', '-c', file], jsonLines(numbered(501)))
    }

    it('records user.created for each user, and without --events, no event is recorded', async () => {
      expect(await importWithEvents(events())).toEqual(summary(501, 501))
      const recorded = () =>
        inside(database =>
          database.query<{ type: string; user_id: number; body: string }>(
            'select e.type, e.user_id, e.body from events e join users u on u.id = e.user_id order by e.user_id',
          ),
        )
      const rows = await recorded()
      expect(rows).toHaveLength(501)
      expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(['user.created']))
      expect(JSON.parse(rows[0]?.body ?? '').data).toEqual({
        ...{ user_id: 1, email: 'user1@example.com', plan: 'free', is_active: 1 },
      })
      await users(['import', '-', '--format', 'jsonl', '-c', 'events.yaml'], jsonLines(numbered(1, 900)))
      expect(await recorded()).toHaveLength(501)
    })

    it.each(['', `events: { url: '', secret: '' }`, events(', types: [user.deleted]')])(
      'exits with 2 if the configuration does not send user.created (%s)',
      async admin => {
        expect(await importWithEvents(admin)).toEqual({
          exit: 2,
          stdout: '',
          stderr: 'error: --events needs the section events in events.yaml, with the type user.created\n',
        })
        expect(await emails()).toEqual([])
      },
    )
  })

  describe('the command line', () => {
    it('selects the format by the file name, unless `--format` is given', async () => {
      writeFileSync(join(cwd, 'one.jsonl'), '{"email":"a@example.com"}\n{"email":1}\n')
      writeFileSync(join(cwd, 'two.CSV'), 'email\nb@example.com\n')
      writeFileSync(join(cwd, 'three.jsonl'), 'email\nc@example.com\n')
      const printed = await users(['import', 'one.jsonl'])
      expect(printed.stderr).toMatch(/^one\.jsonl:2 {2}email {2}The value is not an email\. /)
      expect(await users(['import', 'two.CSV'])).toEqual(summary(1, 1))
      expect(await users(['import', 'three.jsonl', '--format', 'csv'])).toEqual(summary(1, 1))
      expect(await emails()).toEqual(['a@example.com', 'b@example.com', 'c@example.com'])
    })

    it.each([
      ['-', '; use --format jsonl or --format csv'],
      ['users.json', '; use --format jsonl or --format csv'],
      ['missing.jsonl', 'cannot be opened (ENOENT)'],
      ['.', '; use --format'],
    ])('exits with 2 for the file %s without --format', async (name, message) => {
      const printed = await users(['import', name])
      expect(printed).toMatchObject({ exit: 2, stdout: '' })
      expect(printed.stderr).toContain(message)
    })

    it.each([
      ['.', '--format', 'csv'],
      ['-', '--format', 'xml'],
      ['-', '--format', 'csv', '--on-conflict', 'replace'],
      [],
    ])('exits with 2 for invalid arguments: %s %s %s', async (...words) => {
      expect(await users(['import', ...words])).toMatchObject({ exit: 2, stdout: '' })
    })

    it('prints the counts as JSON with --json', async () => {
      const printed = await importJson([{ email: 'a@example.com' }, {}], '--json')
      expect(printed).toMatchObject({ exit: 1, stdout: '{"read":2,"created":1,"skipped":0,"faults":1}\n' })
      const [fault] = faultsOf(printed)
      expect(fault).toBe('2  email  The email is missing. Add it.')
    })

    it('accepts an empty file without a fault, but a CSV file needs a header', async () => {
      expect(await importLines('')).toEqual(summary(0, 0))
      expect(await importCsv('email\n')).toEqual(summary(0, 0))
      expect((await importCsv('')).exit).toBe(1)
    })

    it('shows in its help that all replicas must run this version', async () => {
      const { stdout } = await users(['import', '--help'])
      expect(stdout).toContain('Import only after all replicas run this version.')
    })
  })
})

const withMail = "mail: { smtp: 'smtp://127.0.0.1:1', from: 'auth@example.com' }"
const eventSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

describe('peage users import and export while a gateway has the embedded database open', () => {
  const { users } = gatewayPlace()

  it.each([
    ['import', '-', '--format', 'jsonl'],
    ['import', '-', '--format', 'jsonl', '--dry-run'],
    ['export'],
  ])('exit with 1, and the message asks the operator to stop the gateway (%s %s %s %s)', async (...words) => {
    const { exit, stdout, stderr } = await users(words, '{"email":"a@example.com"}\n')
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
    expect(stderr).toContain('This command needs the database for itself. Stop the gateway first.')
  })
})
