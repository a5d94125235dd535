// Tests the output and the audit entries of `peage users`, on the database and through a running gateway.
import { expect, it } from 'vitest'
import { json } from './peage.ts'
import { describeOverDoors, password } from './users-doors.ts'

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describeOverDoors('peage users', ({ users, run, inside, operator, newUser }) => {
  it('`list` prints that there are no users', async () => {
    expect(await users(['list'])).toEqual({ exit: 0, stdout: 'no users\n', stderr: '' })
    expect(json(await users(['list', '--json']))).toEqual({ users: [] })
  })

  it('`show` prints an active or inactive user, by id or by email in any letter case, without the password hash', async () => {
    const { id, email } = await newUser()
    const textOf = async () => (await users(['show', email])).stdout.split('\n')
    const head = [`id        ${id}`, `email     ${email}`, 'plan      free']
    const created = expect.stringMatching(/^created {3}\S+Z$/)
    expect(await textOf()).toEqual([...head, 'active    yes', 'verified  no', 'usage     -', created, ''])
    await inside(database =>
      database.query(
        `update users set is_active = 0, daily_usage = 3, last_usage_date = '2030-01-02',
                email_verified_at = '2030-01-01T00:00:00Z' where id = $1`,
        [id],
      ),
    )
    const expected = {
      ...{ id, email, plan: 'free', is_active: 0, daily_usage: 3, last_usage_date: '2030-01-02' },
      ...{ created_at: iso, email_verified_at: '2030-01-01T00:00:00.000Z', identities: [] },
    }
    expect(json(await users(['show', String(id), '--json']))).toEqual(expected)
    expect(json(await users(['show', email.toUpperCase(), '--json']))).toEqual(expected)
    const verified = 'verified  2030-01-01T00:00:00.000Z'
    expect(await textOf()).toEqual([
      ...head,
      'active    no',
      verified,
      'usage     3 on 2030-01-02',
      created,
      '',
    ])
  })

  it('`list` prints all pages of users in the order of their ids, and filters by plan and email', async () => {
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

  it('`sessions` prints the active sessions of a user, and `revoke-sessions` revokes all of them', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    const { sessions } = json(await users(['sessions', email, '--json']))
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
      `all sessions of user ${id} (${email}) were revoked\n`,
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

  it('`export` prints everything that is stored about a user, except the password hash, by id or email', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    for (const ref of [String(id), email]) {
      const exported = await users(['export', ref])
      expect(json(exported)).toEqual({
        user: expect.objectContaining({ id, email, plan: 'free' }),
        subscription: expect.objectContaining({ plan: 'free' }),
        sessions: [expect.any(Object), expect.any(Object)],
        api_token: null,
        api_keys: [],
        identities: [],
        webhook: null,
        deliveries: [],
        mails: [],
        usage: [],
      })
      expect(exported.stdout).not.toContain('argon2')
    }
    expect((await users(['export', '9007199254740991'])).exit).toBe(1)
  })

  it('`explain --user` uses the stored plan, daily usage, email verification and status of the user', async () => {
    const { id } = await newUser()
    const explain = async (who = String(id)) =>
      (await run(['explain', 'GET', '/one', '--user', who])).stdout.replace(/retry-after: \d+/, '')
    await inside(database =>
      database.query(
        "update users set daily_usage = 1, last_usage_date = (now() at time zone 'UTC')::date where id = $1",
        [id],
      ),
    )
    const spent = await explain()
    const { email } = JSON.parse((await users(['show', String(id), '--json'])).stdout)
    expect(await explain(email.toUpperCase())).toBe(spent)
    expect(spent).toContain(`, as free, user ${id}, 1 used today, email not verified\n`)
    expect(spent).toContain('free_daily    refuse  429 daily_limit_reached')
    await users(['set-plan', String(id), 'pro'])
    await users(['set-verified', String(id)])
    expect(await explain()).toMatch(new RegExp(`, as pro, user ${id}, 1 used today\n[^]*from the upstream a`))
    await users(['deactivate', String(id)])
    expect(await explain()).toMatch(
      new RegExp(`, as pro, user ${id} \\(inactive\\)[^]*authenticate  refuse  401 user_not_found`),
    )
  })

  it('`explain --user` fails if the user does not exist, and cannot be combined with other options about the caller', async () => {
    expect(await run(['explain', 'GET', '/one', '--user', '9007199254740991'])).toEqual({
      exit: 1,
      stdout: '',
      stderr: 'error: there is no user 9007199254740991. Run peage users list to see all users.\n',
    })
    expect(await run(['explain', 'GET', '/one', '--user', 'nobody@example.com'])).toMatchObject({
      exit: 1,
      stderr:
        'error: there is no user with the email nobody@example.com. Run peage users list to see all users.\n',
    })
    for (const more of [['--as', 'pro'], ['--used-today', '1'], ['--used', '1'], ['--unverified']]) {
      const { exit, stderr } = await run(['explain', 'GET', '/one', '--user', '1', ...more])
      expect([exit, stderr]).toEqual([2, expect.stringContaining('cannot be used with option')])
    }
    expect((await run(['explain', 'GET', '/one', '--user', 'ada'])).exit).toBe(2)
  })

  it('`list` and `show` escape invisible characters in an email, and characters that reverse text', async () => {
    const email = 'eve@example.com\u202e\u200b\u3164\u115f\u{e0041}'
    const refused = await users(['create', email, '--password-stdin'], password)
    expect([refused.exit, refused.stderr]).toEqual([2, expect.stringContaining('invisible character')])
    // Accounts of version 0.1 may have emails with invisible characters.
    await users(['create', 'eve@example.com', '--password-stdin'], password)
    await inside(database =>
      database.query('update users set email = $2 where email = $1', ['eve@example.com', email]),
    )
    expect((await users(['list'])).stdout).toContain(
      'eve@example.com\\u{202e}\\u{200b}\\u{3164}\\u{115f}\\u{e0041}\n',
    )
    const { id } = json(await users(['list', '--json'])).users.find(
      (one: { email: string }) => one.email === email,
    )
    expect((await users(['show', String(id)])).stdout).not.toMatch(/[\u202e\u3164]/)
    expect(json(await users(['show', String(id), '--json'])).email).toBe(email)
  })

  it('each change and each export of a user is in the audit log with its operator, but without email and password', async () => {
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
        ...{ operator, channel: 'cli', method, route, changes, previous, status },
        ...{ request_id: expect.stringMatching(/^[\w-]{10,36}$/), at: expect.any(Date) },
      })),
    )
    expect(new Set(entries.map(({ request_id }) => request_id)).size).toBe(entries.length)
  })
})
