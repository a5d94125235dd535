// Tests that `peage users` makes the same changes on the database and through a running gateway.
import { expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { json } from './peage.ts'
import { describeOverDoors, password, passwords } from './users-doors.ts'

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Returns whether the password matches the stored hash of the user. */
async function opens(database: Database, email: string, password: string): Promise<boolean> {
  const credentials = await createUserStore(database).findPasswordRecord(email)
  return passwords.verify(credentials?.password_hash, password)
}

describeOverDoors('peage users', ({ users, inside, newUser }) => {
  it('`create` stores an account with the plan `free`, the given password and the trimmed, lower-case email', async () => {
    const created = await users(['create', ' Ada@Example.COM ', '--password-stdin'], `${password}\n`)
    expect(created).toEqual({
      exit: 0,
      stdout: expect.stringMatching(/^user \d+ \(ada@example\.com\) was created on plan free\n$/),
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

  it('`create --plan` and `set-plan` set the plan of the user and of the subscription', async () => {
    const create = ['create', 'b@example.com', '--plan', 'premium', '--password-stdin', '--json']
    const { id, plan } = json(await users(create, password))
    expect(plan).toBe('premium')
    const subscribed = () =>
      inside(database => database.query('select plan from subscriptions where user_id = $1', [id]))
    expect(await subscribed()).toEqual([{ plan: 'premium' }])
    await users(['set-plan', String(id), 'pro'])
    expect(await subscribed()).toEqual([{ plan: 'pro' }])
  })

  it('`create` refuses an email that is in use, prints which user has it, and does not check the password', async () => {
    const { id, email } = await newUser()
    expect(await users(['create', email.toUpperCase(), '--password-stdin'], 'x')).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the email is in use by user ${id} (${email}). Use another email.\n`,
    })
    await users(['deactivate', email])
    expect((await users(['create', email, '--password-stdin'], password)).stderr).toBe(
      `error: the email is in use by the inactive user ${id} (${email}). To reactivate that user, run peage users activate ${id}.\n`,
    )
  })

  it.each([
    ['1234567\n', 'the password is too short: use at least 8 characters'],
    ['', 'the password is too short: use at least 8 characters'],
    ['x'.repeat(1025), 'the password is too long: use at most 1024 characters'],
    ['é'.repeat(10_000), 'the password is too long: use at most 1024 characters'],
    [
      new Uint8Array([0xff, 0xfe, ...Buffer.from('12345678')]),
      'the password on standard input is not UTF-8 text',
    ],
  ])('`create` refuses an invalid password and stores nothing: case %#', async (stdin, sentence) => {
    expect(await users(['create', 'short@example.com', '--password-stdin'], stdin)).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: ${sentence}\n`,
    })
    expect(json(await users(['list', '--email', 'short@example.com', '--json']))).toEqual({ users: [] })
  })

  it('`set-password` removes exactly one newline from a password on standard input', async () => {
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

  const unused = { daily_usage: 0, last_usage_date: null }
  it.each<[string, string[], string, object, string]>([
    ['set-plan', ['premium'], 'user WHO is now on plan premium', { plan: 'premium' }, "plan = 'free'"],
    ['deactivate', [], 'user WHO is inactive', { is_active: 0 }, 'is_active = 1'],
    ['activate', [], 'user WHO is active', { is_active: 1 }, 'is_active = 0'],
    [
      'set-verified',
      [],
      'the email of user WHO is marked as verified',
      { email_verified_at: iso },
      'plan = plan',
    ],
    [
      'set-verified',
      ['--no'],
      'the email of user WHO is marked as not verified',
      { email_verified_at: null },
      'email_verified_at = now()',
    ],
    [
      'reset-usage',
      [],
      'the daily usage of user WHO was reset',
      unused,
      "daily_usage = 3, last_usage_date = '2030-01-02'",
    ],
  ])(
    'the command %s with %j accepts an id or an email, changes one property of the user, and prints the change',
    async (name, more, said, changed, before) => {
      const { id, email } = await newUser()
      const prepare = () =>
        inside(database => database.query(`update users set ${before} where id = $1`, [id]))
      await prepare()
      // Only `show` prints the identities.
      const { identities, ...shown } = json(await users(['show', email, '--json']))
      const record = { ...shown, ...changed }
      expect(json(await users([name, email.toUpperCase(), ...more, '--json']))).toEqual(record)
      await prepare()
      const stdout = `${said.replace('WHO', `${id} (${email})`)}\n`
      expect(await users([name, String(id), ...more])).toEqual({ exit: 0, stdout, stderr: '' })
      expect(json(await users(['show', String(id), '--json']))).toEqual({ ...record, identities })
    },
  )

  it('`set-password` replaces the password, revokes every session, and prints the result', async () => {
    const { id, email } = await newUser({ sessions: 2 })
    const before = json(await users(['sessions', email, '--json']))
    expect(before.sessions).toHaveLength(2)
    expect(await users(['set-password', email, '--password-stdin'], 'un autre mot\n')).toEqual({
      exit: 0,
      stdout: `user ${id} (${email}) has a new password; all sessions were revoked\n`,
      stderr: '',
    })
    expect(json(await users(['sessions', email, '--json']))).toEqual({ sessions: [] })
    await inside(async database => {
      expect(await opens(database, email, 'un autre mot')).toBe(true)
      expect(await opens(database, email, password)).toBe(false)
    })
  })

  it('`delete --yes` removes the user and the sessions, and `delete` without --yes fails if there is no terminal', async () => {
    const { id, email } = await newUser({ sessions: 1 })
    expect(await users(['delete', email], 'y\n')).toEqual({
      exit: 2,
      stdout: '',
      stderr: 'error: cannot prompt without a terminal; use --yes\n',
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
    ['keys'],
    ['revoke-keys'],
    ['revoke-keys', 'api-token-1'],
  ])('the command %s exits with 1 and a message if the user does not exist', async (name, ...more) => {
    for (const [who, which] of [
      ['999999999', 'user 999999999'],
      ['0', 'user 0'],
      ['No+Body@Example.com', 'user with the email no+body@example.com'],
    ] as const) {
      expect(await users([name, who, ...more], password)).toEqual({
        exit: 1,
        stdout: '',
        stderr: `error: there is no ${which}. Run peage users list to see all users.\n`,
      })
    }
  })
})
