// `peage users …` on the database itself: what it shows, what it changes, and how it reports failures.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPasswords } from '../../src/accounts/password.ts'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import type { Database } from '../../src/storage/database.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { json, runIn } from './peage.ts'
import { describeOverPlaces, folder, peage, writeConfiguration } from './users-setup.ts'

const password = 'un mot de passe'
const hour = 60 * 60_000
const passwords = createPasswords({ concurrency: 1, queue: 0, wait: 0 })

/** Whether the stored hash of that user matches the password. */
async function opens(database: Database, email: string, password: string): Promise<boolean> {
  const credentials = await createUserStore(database).findPasswordRecord(email)
  return passwords.verify(credentials?.password_hash, password)
}

/** Of `password`: hashed once for all users. */
const passwordHash = await passwords.hash(password)

describeOverPlaces('peage users', ({ users, run, inside }) => {
  let made = 0
  /** Creates a user with that many sessions. */
  async function newUser({ sessions = 0 } = {}): Promise<{ id: number; email: string }> {
    const email = `user${++made}@example.com`
    // Not by the command, which would hash the password for each.
    const id = await inside(async database => {
      const created = await createUserStore(database).create(email, passwordHash)
      if (created.outcome !== 'created') return expect.unreachable()
      const expiresAt = new Date(Date.now() + hour)
      for (let i = 0; i < sessions; i += 1)
        await createSessionStore(database).create(
          created.id,
          0,
          storedToken(`${email}.${i}`, expiresAt),
          signIn(),
        )
      return created.id
    })
    return { id, email }
  }

  it('list says so where there are no users', async () => {
    expect(await users(['list'])).toEqual({ exit: 0, stdout: 'no users\n', stderr: '' })
    expect(json(await users(['list', '--json']))).toEqual({ users: [] })
  })

  it('create makes an account that its password opens, its email stripped and lower-cased, on plan free', async () => {
    const created = await users(['create', ' Ada@Example.COM ', '--password-stdin'], `${password}\n`)
    expect(created).toEqual({
      exit: 0,
      stdout: expect.stringMatching(/^user \d+ \(ada@example\.com\) is created, on plan free\n$/),
      stderr: '',
    })
    await inside(async database => {
      expect(await opens(database, 'ada@example.com', password)).toBe(true)
      expect(
        await database.query(
          `select u.plan, u.is_active, s.plan as subscribed from users u join subscriptions s on s.user_id = u.id
            where u.email = 'ada@example.com'`,
        ),
      ).toEqual([{ plan: 'free', is_active: 1, subscribed: 'free' }])
    })
  })

  it('export prints all that is kept of a user, by id or email, without the hash of the password', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    for (const ref of [String(id), email]) {
      const exported = await users(['export', ref])
      expect(json(exported)).toEqual({
        user: expect.objectContaining({ id, email, plan: 'free' }),
        subscription: expect.objectContaining({ plan: 'free' }),
        sessions: [expect.any(Object), expect.any(Object)],
        api_token: null,
        webhook: null,
        deliveries: [],
        mails: [],
      })
      expect(exported.stdout).not.toContain('argon2')
    }
    expect((await users(['export', '9007199254740991'])).exit).toBe(1)
  })

  it('all that changes or exports a user stands in the audit, by the operator cli, without email or password', async () => {
    const { id } = json(
      await users(['create', 'audited@example.com', '--password-stdin', '--json'], password),
    )
    const who = String(id)
    await users(['set-plan', who, 'pro'])
    await users(['set-verified', who])
    await users(['deactivate', who])
    await users(['set-password', who, '--password-stdin'], password)
    await users(['reset-usage', who])
    await users(['revoke-sessions', who])
    await users(['export', who])
    for (const reading of ['show', 'sessions']) await users([reading, who])
    await users(['delete', who, '--yes'])
    expect((await users(['set-plan', who, 'pro'])).exit).toBe(1)
    const entries = await inside(database =>
      database.query<{ request_id: string; at: Date }>(
        `select operator, channel, method, route, changes, previous, status, request_id, at
           from admin_audit where user_id = $1 order by id`,
        [id],
      ),
    )
    const one = '/admin/v1/users/:id'
    expect(entries).toEqual(
      [
        ['POST', '/admin/v1/users', { email: 'set', password: 'set', plan: 'free' }, 201],
        ['PATCH', one, { plan: 'pro' }, 200, { plan: 'free' }],
        ['PATCH', one, { email_verified: true }, 200, { email_verified: false }],
        ['PATCH', one, { is_active: 0 }, 200, { is_active: 1 }],
        ['POST', `${one}/password`, { password: 'set' }, 204],
        ['POST', `${one}/reset-usage`, {}, 200],
        ['DELETE', `${one}/sessions`, {}, 200],
        ['GET', `${one}/export`, {}, 200],
        ['DELETE', one, {}, 204],
      ].map(([method, route, changes, status, previous = null]) => ({
        ...{ operator: 'cli', channel: 'cli', method, route, changes, previous, status },
        ...{ request_id: expect.stringMatching(/^[0-9a-f-]{36}$/), at: expect.any(Date) },
      })),
    )
    expect(new Set(entries.map(({ request_id }) => request_id)).size).toBe(entries.length)
  })

  it('explain --user asks as that user: plan, today’s use, verification and activity by the record', async () => {
    const { id } = await newUser()
    const explain = async () => (await run(['explain', 'GET', '/one', '--user', String(id)])).stdout
    await inside(database =>
      database.query(
        "update users set daily_usage = 1, last_usage_date = (now() at time zone 'UTC')::date where id = $1",
        [id],
      ),
    )
    const spent = await explain()
    const { email } = JSON.parse((await users(['show', String(id), '--json'])).stdout)
    expect((await run(['explain', 'GET', '/one', '--user', email.toUpperCase()])).stdout).toBe(spent)
    expect(spent).toContain(`, as free, user ${id}, 1 used today, email not verified\n`)
    expect(spent).toContain('free_daily    refuse  429 daily_limit_reached')
    await users(['set-plan', String(id), 'pro'])
    await users(['set-verified', String(id)])
    expect(await explain()).toMatch(
      new RegExp(`, as pro, user ${id}, 1 used today\n[^]*it is forwarded to a`),
    )
    await users(['deactivate', String(id)])
    expect(await explain()).toMatch(
      new RegExp(`, as pro, user ${id} \\(inactive\\)[^]*authenticate  refuse  401 user_not_found`),
    )
  })

  it('explain --user says where there is no such user, and goes with nothing that says who calls', async () => {
    expect(await run(['explain', 'GET', '/one', '--user', '9007199254740991'])).toEqual({
      exit: 1,
      stdout: '',
      stderr: 'error: there is no user 9007199254740991: peage users list shows who there is\n',
    })
    expect(await run(['explain', 'GET', '/one', '--user', 'nobody@example.com'])).toMatchObject({
      exit: 1,
      stderr:
        'error: there is no user with the email nobody@example.com: peage users list shows who there is\n',
    })
    for (const more of [['--as', 'pro'], ['--used-today', '1'], ['--unverified']]) {
      const { exit, stderr } = await run(['explain', 'GET', '/one', '--user', '1', ...more])
      expect([exit, stderr]).toEqual([2, expect.stringContaining('cannot be used with option')])
    }
    expect((await run(['explain', 'GET', '/one', '--user', 'ada'])).exit).toBe(2)
  })

  it('create --plan puts the subscription on that plan too', async () => {
    const user = json(
      await users(['create', 'b@example.com', '--plan', 'pro', '--password-stdin', '--json'], password),
    )
    expect(user).toMatchObject({ email: 'b@example.com', plan: 'pro' })
    await inside(async database =>
      expect(await database.query('select plan from subscriptions where user_id = $1', [user.id])).toEqual([
        { plan: 'pro' },
      ]),
    )
  })

  it('create refuses an email in use, before it takes the password, and says by whom', async () => {
    const { id, email } = await newUser()
    expect(await users(['create', email.toUpperCase(), '--password-stdin'], 'x')).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the email is in use by user ${id} (${email}): take another\n`,
    })
    await users(['deactivate', email])
    expect((await users(['create', email, '--password-stdin'], password)).stderr).toBe(
      `error: the email is in use by user ${id} (${email}), who is inactive: peage users activate ${id} brings that user back\n`,
    )
  })

  it.each([
    ['1234567\n', 'the password is too short: it needs at least 8 characters'],
    ['', 'the password is too short: it needs at least 8 characters'],
    ['x'.repeat(1025), 'the password is too long: it may have at most 1024 characters'],
    ['é'.repeat(10_000), 'the password is too long: it may have at most 1024 characters'],
    [
      new Uint8Array([0xff, 0xfe, ...Buffer.from('12345678')]),
      'the password on standard input is not UTF-8 text',
    ],
  ])('create refuses the password %#, and nothing is created', async (stdin, sentence) => {
    expect(await users(['create', 'short@example.com', '--password-stdin'], stdin)).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: ${sentence}\n`,
    })
    expect(json(await users(['list', '--email', 'short@example.com', '--json']))).toEqual({ users: [] })
  })

  it('exactly one newline is cut from a password on standard input', async () => {
    const { id, email } = await newUser()
    for (const [stdin, stored] of [
      ['🗝️🗝️🗝️🗝️ space \n\n', '🗝️🗝️🗝️🗝️ space \n'],
      ['windows-line\r\n', 'windows-line'],
      ['no newline', 'no newline'],
    ] as const) {
      expect(await users(['set-password', String(id), '--password-stdin'], stdin)).toMatchObject({ exit: 0 })
      expect(await inside(database => opens(database, email, stored))).toBe(true)
    }
  })

  it('show finds a user by id and by email in any letter case, inactive too, and never shows the hash', async () => {
    const { id, email } = await newUser()
    expect(await users(['deactivate', String(id)])).toMatchObject({
      exit: 0,
      stdout: `user ${id} (${email}) is inactive\n`,
    })
    const expected = {
      id,
      email,
      plan: 'free',
      is_active: 0,
      daily_usage: 0,
      last_usage_date: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      email_verified_at: null,
    }
    expect(json(await users(['show', String(id), '--json']))).toEqual(expected)
    expect(json(await users(['show', email.toUpperCase(), '--json']))).toEqual(expected)
    const { stdout } = await users(['show', email])
    expect(stdout).toMatch(
      new RegExp(
        `^id        ${id}\nemail     ${email}\nplan      free\nactive    no\nverified  no\nusage     -\ncreated   \\S+Z\n$`,
      ),
    )
  })

  it('set-plan changes the record and the subscription', async () => {
    const { id, email } = await newUser()
    expect(await users(['set-plan', email, 'premium'])).toEqual({
      exit: 0,
      stdout: `user ${id} (${email}) is on plan premium\n`,
      stderr: '',
    })
    expect(json(await users(['set-plan', String(id), 'pro', '--json']))).toMatchObject({ id, plan: 'pro' })
    await inside(async database =>
      expect(
        await database.query(
          'select u.plan, s.plan as subscribed from users u join subscriptions s on s.user_id = u.id where u.id = $1',
          [id],
        ),
      ).toEqual([{ plan: 'pro', subscribed: 'pro' }]),
    )
  })

  it('set-password replaces the password, revokes every session, and says so', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    const before = json(await users(['sessions', email, '--json']))
    expect(before.sessions).toHaveLength(2)
    expect(await users(['set-password', email, '--password-stdin'], 'un autre mot\n')).toEqual({
      exit: 0,
      stdout: `user ${id} (${email}) has a new password; every session is revoked\n`,
      stderr: '',
    })
    expect(json(await users(['sessions', email, '--json']))).toEqual({ sessions: [] })
    await inside(async database => {
      expect(await opens(database, email, 'un autre mot')).toBe(true)
      expect(await opens(database, email, password)).toBe(false)
    })
  })

  it('set-verified counts an email as verified, and with --no as not', async () => {
    const { id, email } = await newUser()
    expect((await users(['show', email])).stdout).toContain('verified  no\n')
    expect(await users(['set-verified', email])).toEqual({
      exit: 0,
      stdout: `the email of user ${id} (${email}) is verified\n`,
      stderr: '',
    })
    const shown = json(await users(['show', email, '--json'])) as { email_verified_at: string }
    expect(Number.isNaN(Date.parse(shown.email_verified_at))).toBe(false)
    expect((await users(['show', email])).stdout).toContain(`verified  ${shown.email_verified_at}\n`)
    expect((await users(['set-verified', String(id), '--no'])).stdout).toBe(
      `the email of user ${id} (${email}) is not verified\n`,
    )
    expect(json(await users(['show', email, '--json']))).toMatchObject({ email_verified_at: null })
  })

  it('reset-usage gives the uses of the day back', async () => {
    const { id, email } = await newUser()
    const spend = "update users set daily_usage = 3, last_usage_date = '2030-01-02' where id = $1"
    await inside(database => database.query(spend, [id]))
    expect((await users(['show', email])).stdout).toContain('usage     3 on 2030-01-02\n')
    expect(json(await users(['reset-usage', email, '--json']))).toMatchObject({
      id,
      daily_usage: 0,
      last_usage_date: null,
    })
    await inside(database => database.query(spend, [id]))
    expect((await users(['reset-usage', email])).stdout).toBe(
      `user ${id} (${email}) has used nothing today\n`,
    )
    expect(json(await users(['show', email, '--json']))).toMatchObject({ daily_usage: 0 })
  })

  it('deactivate and activate switch the flag and nothing else', async () => {
    const { id, email } = await newUser()
    const before = json(await users(['show', email, '--json']))
    expect(json(await users(['deactivate', email, '--json']))).toEqual({ ...before, is_active: 0 })
    expect(await users(['activate', String(id)])).toMatchObject({
      exit: 0,
      stdout: `user ${id} (${email}) is active\n`,
    })
    expect(json(await users(['show', email, '--json']))).toEqual(before)
  })

  it('sessions shows the active ones, and revoke-sessions leaves none', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    const { sessions } = json(await users(['sessions', email, '--json']))
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const uuid = expect.stringMatching(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(sessions).toEqual([
      { id: uuid, created_at: iso, expires_at: iso },
      { id: uuid, created_at: iso, expires_at: iso },
    ])
    const { stdout } = await users(['sessions', email])
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^ID +CREATED +EXPIRES$/),
      expect.stringMatching(/^[0-9a-f-]{36} +\S+Z {2}\S+Z$/),
      expect.stringMatching(/^[0-9a-f-]{36} +\S+Z {2}\S+Z$/),
      '',
    ])
    expect((await users(['revoke-sessions', email])).stdout).toBe(
      `every session of user ${id} (${email}) is revoked\n`,
    )
    expect((await users(['sessions', String(id)])).stdout).toBe('no sessions\n')
    await inside(async database =>
      expect(
        await database.query(
          'select count(*) as live from refresh_tokens where user_id = $1 and revoked = 0',
          [id],
        ),
      ).toEqual([{ live: 0 }]),
    )
  })

  it('delete --yes deletes the user and what is theirs; without a terminal and --yes it refuses', async () => {
    const { id, email } = await newUser({ sessions: 1 })
    expect(await users(['delete', email], 'y\n')).toEqual({
      exit: 2,
      stdout: '',
      stderr: 'error: there is no terminal to ask on: add --yes if you mean it\n',
    })
    expect(await users(['show', email])).toMatchObject({ exit: 0 })
    expect(json(await users(['delete', email, '--yes', '--json']))).toMatchObject({ id, email })
    expect(await users(['show', email])).toMatchObject({ exit: 1 })
    await inside(async database =>
      expect(await database.query('select 1 from refresh_tokens where user_id = $1', [id])).toEqual([]),
    )
  })

  it.each([
    ['show'],
    ['set-plan', 'pro'],
    ['set-password', '--password-stdin'],
    ['reset-usage'],
    ['activate'],
    ['deactivate'],
    ['delete', '--yes'],
    ['sessions'],
    ['revoke-sessions'],
  ])('%s says so where there is no such user, and exits 1', async (name, ...more) => {
    for (const [who, which] of [
      ['999999999', 'user 999999999'],
      ['Nobody@Example.com', 'user with the email nobody@example.com'],
    ] as const) {
      expect(await users([name, who, ...more], password)).toEqual({
        exit: 1,
        stdout: '',
        stderr: `error: there is no ${which}: peage users list shows who there is\n`,
      })
    }
  })

  it('list goes through every page, in the order of ids, and filters by plan and email', async () => {
    await inside(database =>
      database.query(
        `insert into users (email, password_hash, plan)
         select 'many' || n || '@example.com', 'x', case when n % 2 = 0 then 'premium' else 'free' end
           from generate_series(1, 230) n`,
      ),
    )
    const all = json(await users(['list', '--json'])).users
    const ids: number[] = all.map(({ id }: { id: number }) => id)
    expect(ids.length).toBeGreaterThan(230)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    expect(all[0]).not.toHaveProperty('password_hash')
    const [{ n }] = (await inside(database => database.query('select count(*) as n from users'))) as [
      { n: number },
    ]
    expect(all).toHaveLength(n)

    const lines = (await users(['list'])).stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(n + 1)
    expect(lines.filter(line => /^ID +PLAN +ACTIVE +USAGE +CREATED +EMAIL$/.test(line))).toHaveLength(1)

    const premium = json(await users(['list', '--plan', 'premium', '--json'])).users
    expect(premium).toHaveLength(all.filter(({ plan }: { plan: string }) => plan === 'premium').length)
    expect(premium.length).toBeGreaterThan(100)
    const one = json(await users(['list', '--email', ' MANY7@example.com', '--json'])).users
    expect(one).toMatchObject([{ email: 'many7@example.com' }])
    expect(json(await users(['list', '--email', 'many7@example.com', '--plan', 'pro', '--json']))).toEqual({
      users: [],
    })
  })

  it('an email with characters that turn or hide a line is shown with them spelled out', async () => {
    const email = 'eve@example.com\u202e\u200b\u3164\u115f\u{e0041}'
    const refused = await users(['create', email, '--password-stdin'], password)
    expect([refused.exit, refused.stderr]).toEqual([2, expect.stringContaining('invisible character')])
    // Version 0.1 stored such emails.
    await users(['create', 'eve@example.com', '--password-stdin'], password)
    await inside(database =>
      database.query('update users set email = $2 where email = $1', ['eve@example.com', email]),
    )
    expect((await users(['list', '--email', email])).stdout).toContain(
      'eve@example.com\\u{202e}\\u{200b}\\u{3164}\\u{115f}\\u{e0041}\n',
    )
    expect((await users(['show', email])).stdout).not.toMatch(/[\u202e\u3164]/)
    expect(json(await users(['show', email, '--json'])).email).toBe(email)
  })
})

describe('peage users', () => {
  const cwd = folder()

  it.each([
    [['users'], 'Usage: peage users'],
    [['users', 'lst'], 'Did you mean list?'],
    [['users', 'list', '--plan', 'gold'], 'Allowed choices are free, premium, pro.'],
    [['users', 'list', '--email', 'nobody'], 'It must be an email'],
    [['users', 'show'], "missing required argument 'user'"],
    [['users', 'show', 'ada'], 'It must be an id such as 42, or an email.'],
    [['users', 'show', '9007199254740993'], 'It must be an id such as 42, or an email.'],
    [['users', 'set-plan', '1', 'gold'], 'Allowed choices are free, premium, pro.'],
    [['users', 'create', 'ada'], 'It must be an email'],
    [['users', 'create', 'a@example.com', 'secret-secret'], 'too many arguments'],
    [['users', 'create', 'a@example.com', '--password', 'secret'], 'unknown option'],
    [['users', 'create', 'a@example.com'], 'pass the password with --password-stdin'],
    [['users', 'set-password', '1'], 'pass the password with --password-stdin'],
    [['users', 'list', '-c', 'nowhere.yaml'], 'nowhere.yaml:1:1  (file)  '],
  ])('%j is a bad call: said on standard error, exit 2, and nothing is opened', async (words, sentence) => {
    expect(await peage(cwd, words)).toEqual({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(sentence),
    })
    expect(existsSync(join(cwd, 'data'))).toBe(false)
  })

  it('asks for a migration where the data folder is not there or empty, and makes nothing in it', async () => {
    const missing = await peage(cwd, ['users', 'list'])
    const sentence = `error: there is no database in ${join(cwd, 'data')} yet: run peage migrate -c gateway.yaml first\n`
    expect(missing).toEqual({ exit: 1, stdout: '', stderr: sentence })
    expect(readdirSync(cwd)).toEqual(['gateway.yaml'])
  })

  describe('on a data folder', () => {
    beforeAll(async () => expect(await peage(cwd, ['migrate'])).toMatchObject({ exit: 0 }))

    it('opens the data folder: what one command stored there the next one finds', async () => {
      const create = ['users', 'create', 'stays@example.com', '--password-stdin', '--json']
      const created = json(await peage(cwd, create, password))
      expect(json(await peage(cwd, ['users', 'list', '--json']))).toEqual({ users: [created] })
      expect((await peage(cwd, ['explain', 'GET', '/one', '--user', String(created.id)])).stdout).toContain(
        `, as free, user ${created.id}, email not verified\n`,
      )
      expect(await peage(cwd, ['keys', 'list'])).toEqual({ exit: 0, stdout: 'no keys\n', stderr: '' })
    })

    it('list ends quietly where its reader has seen enough, and fails where its output does', async () => {
      for (const [code, expected] of [
        ['EPIPE', 0],
        ['ENOSPC', 1],
      ] as const) {
        const stdout = new Writable({
          write: (_c, _e, done) => done(Object.assign(new Error(code), { code })),
        })
        expect(await runIn(cwd, ['users', 'list'], { stdout })).toMatchObject({
          exit: expected,
          stderr: expected === 0 ? '' : `error: ${code}\n`,
        })
      }
    })
  })

  it('says what to check where the database is away', async () => {
    writeConfiguration(cwd, { name: 'away.yaml', postgres: 'postgres://x:s3cret@127.0.0.1:1/x' })
    const { exit, stdout, stderr } = await peage(cwd, ['users', 'list', '-c', 'away.yaml'])
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: the database failed \(.*ECONNREFUSED.*\): check that it is up, and that storage\.postgres in away\.yaml is right\n$/,
    )
    expect(stderr).not.toContain('s3cret')
  })
})

describeWithServices('peage users on a Postgres without tables', () => {
  const cwd = folder()
  let url = ''
  afterAll(() => dropPostgresDatabase(url))

  it('asks for a migration, and makes none', async () => {
    url = await createPostgresDatabase()
    writeConfiguration(cwd, { postgres: url })
    for (let i = 0; i < 2; i += 1) {
      expect(await peage(cwd, ['users', 'list', '--json'])).toEqual({
        exit: 1,
        stdout: '',
        stderr:
          'error: the database is not migrated to this version: run peage migrate -c gateway.yaml first\n',
      })
    }
  })
})
