// Tests `peage plans`, and the plans that `peage users` accepts, directly on a database and through a gateway.
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Io } from '../../src/commands/io.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import { json } from './peage.ts'
import { describeOverDoors, gatewayPlace, password } from './users-doors.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const nothing = { quotas: {}, rate_limit: null, api_keys: 0, webhook: false }

describeOverDoors('peage plans', ({ run, users, inside, operator }) => {
  beforeEach(() =>
    inside(async database => {
      for (const table of ['admin_audit', 'users']) await database.query(`delete from ${table}`)
      await database.query(
        `insert into users (email, password_hash, plan, is_active)
         select plan || n || '@example.com', 'x', plan, n % 2
           from (values ('free', 2), ('old', 3), ('rare', 1)) as wanted (plan, users), generate_series(1, users) n`,
      )
      await database.query(
        "insert into subscriptions (user_id, plan) select id, plan from users where plan = 'old'",
      )
    }),
  )
  const plansOf = (plan: string) =>
    inside(database =>
      database.query<{ plan: string; subscribed: string }>(
        `select u.plan, s.plan as subscribed from users u left join subscriptions s on s.user_id = u.id
          where email like $1 || '%' order by u.id`,
        [plan],
      ),
    )

  it('`list` shows the configured plans in order, and then the unknown plans', async () => {
    expect(json(await run(['plans', 'list', '--json']))).toEqual({
      plans: [
        { name: 'free', users: 2, ...nothing },
        { name: 'premium', users: 0, ...nothing },
        { name: 'pro', users: 0, ...nothing, api_keys: 5, webhook: true },
      ],
      unknown: [
        { name: 'old', users: 3 },
        { name: 'rare', users: 1 },
      ],
    })
    expect(await run(['plans', 'list'])).toEqual({
      exit: 0,
      stdout: `PLAN     USERS  RATE LIMIT      API KEYS  WEBHOOK  QUOTAS
free     2      -               0         no       -
premium  0      -               0         no       -
pro      0      -               5         yes      -
old      3      not configured
rare     1      not configured
`,
      stderr: '',
    })
  })

  it('`move` gives all users of one plan another plan, and a repeated command moves no user', async () => {
    const before = await inside(database =>
      database.query<{ id: number }>("select id from users where plan = 'old'"),
    )
    const moved = await run(['plans', 'move', 'old', 'premium', '--yes'])
    expect(moved).toEqual({
      exit: 0,
      stdout: '3 users were moved from plan old to plan premium\n',
      stderr: 'moved 3 of 3\n',
    })
    expect(await plansOf('old')).toEqual(Array(3).fill({ plan: 'premium', subscribed: 'premium' }))
    expect(await plansOf('free')).toEqual(Array(2).fill({ plan: 'free', subscribed: null }))
    const audited = await inside(database =>
      database.query(
        'select user_id, operator, channel, method, route, changes, previous, status from admin_audit order by id',
      ),
    )
    const entry = { operator, channel: 'cli', method: 'PATCH', route: '/admin/v1/users/:id', status: 200 }
    expect(audited).toEqual(
      before.map(({ id }) => ({
        user_id: id,
        ...entry,
        changes: { plan: 'premium' },
        previous: { plan: 'old' },
      })),
    )
    expect(json(await run(['plans', 'move', 'old', 'premium', '--yes', '--json']))).toEqual({
      from: 'old',
      to: 'premium',
      moved: 0,
    })
  })

  it('`move` creates the missing subscription of a user, even if it moves only one user', async () => {
    expect((await run(['plans', 'move', 'rare', 'pro', '--yes'])).stdout).toBe(
      '1 user was moved from plan rare to plan pro\n',
    )
    expect(await plansOf('rare')).toEqual([{ plan: 'pro', subscribed: 'pro' }])
  })

  it('`move` without --yes and without a terminal moves no user and exits with 1', async () => {
    expect(await run(['plans', 'move', 'old', 'premium'], 'y\n')).toEqual({
      exit: 1,
      stdout: '',
      stderr: 'error: cannot prompt without a terminal; use --yes. No user was moved.\n',
    })
    expect(await plansOf('old')).toMatchObject(Array(3).fill({ plan: 'old' }))
  })

  it.each([
    ['y', 0, 'premium'],
    ['', 1, 'old'],
    ['no', 1, 'old'],
  ])('`move` prompts on a terminal, and exits after the answer %j with %i', async (answer, exit, plan) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true }) as Io['stdin'] & PassThrough
    const printed = await run(['plans', 'move', 'old', 'premium'], stdin, soFar => {
      if (soFar === 'Move 3 users from plan old to plan premium? [y/N] ') stdin.write(`${answer}\n`)
    })
    expect(printed.exit).toBe(exit)
    if (exit === 1) expect(printed.stderr).toMatch(/error: no user was moved\n$/)
    expect(await plansOf('old')).toMatchObject(Array(3).fill({ plan }))
  })

  it.each([
    [['plans', 'move', 'old', 'premium1', '--yes'], 'Did you mean premium?'],
    [['plans', 'move', 'free', 'old', '--yes'], "error: the plan 'old' is not configured."],
    [['plans', 'move', 'Old', 'free', '--yes'], 'The name of a plan has at most 32'],
    [['plans', 'move', 'free', 'free', '--yes'], 'error: both plans are the same'],
    [
      ['users', 'set-plan', 'old1@example.com', 'fre'],
      'Allowed choices are free, premium, pro. Did you mean free?',
    ],
    [['users', 'set-plan', 'old1@example.com', 'old'], "error: the plan 'old' is not configured."],
    [['users', 'create', 'a@example.com', '--password-stdin', '--plan', 'por'], 'Did you mean pro?'],
    [['users', 'list', '--plan', 'Old'], 'The name of a plan has at most 32'],
  ])('the command %j exits with 2 and changes nothing', async (words, sentence) => {
    const { exit, stdout, stderr } = await run(words, password)
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' })
    expect(stderr).toContain(sentence)
    expect(await plansOf('old')).toMatchObject(Array(3).fill({ plan: 'old' }))
    expect(await plansOf('a@')).toEqual([])
  })

  it('`users list --plan` accepts a plan that is not configured', async () => {
    const found = json(await users(['list', '--plan', 'old', '--json']))
    expect(found.users).toHaveLength(3)
    expect(json(await users(['list', '--plan', 'unused_plan-1', '--json']))).toEqual({ users: [] })
  })
})

const events = `events: { url: 'http://127.0.0.1:1/', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }`
const customPlans = `upstreams: {}
plans: [{ name: starter, quotas: { exports: 5/day, pages: 0 }, rate_limit: 10/1m }, { name: team, api_keys: 1 }]`

describeWithServices('peage plans on Postgres with custom plans', () => {
  const cwd = folder()
  let url: string
  let database: PostgresDatabase
  beforeAll(async () => {
    url = await createPostgresDatabase()
    writeConfiguration(cwd, { postgres: url, routing: `${customPlans}\n${events}` })
    await peage(cwd, ['migrate'])
    database = openPostgres({ url, maxConnections: 2, onError: () => {} })
  })
  afterAll(async () => {
    await database?.close()
    await dropPostgresDatabase(url)
  })

  it('`users create` without --plan gives the user the first configured plan', async () => {
    const created = await peage(cwd, ['users', 'create', 'a@example.com', '--password-stdin'], password)
    expect(created.stdout).toMatch(/was created on plan starter\n$/)
    const rows = await database.query(
      'select u.plan, s.plan as subscribed from users u join subscriptions s on s.user_id = u.id',
    )
    expect(rows).toEqual([{ plan: 'starter', subscribed: 'starter' }])
    expect(
      (await peage(cwd, ['plans', 'list'])).stdout,
    ).toBe(`PLAN     USERS  RATE LIMIT  API KEYS  WEBHOOK  QUOTAS
starter  1      10/60s      0         no       exports 5/day, pages 0
team     0      -           1         no       -
`)
  })

  it('`move` uses transactions of 1,000 users, and a repeated command continues after an interruption', async () => {
    await database.query('delete from users')
    await database.query('delete from events')
    await database.query(
      `insert into users (email, password_hash, plan)
       select 'many' || n || '@example.com', 'x', case when n % 10 = 0 then 'team' else 'gold' end
         from generate_series(1, 2777) n`,
    )
    const counts = () =>
      database.query<{ plan: string; users: number; events: number }>(
        `select u.plan, count(*) as users, count(e.id) as events, count(s.user_id) as subscriptions
           from users u
           left join events e on e.user_id = u.id and e.type = 'user.plan_changed' and e.body::jsonb->'data'->>'plan' = 'team'
           left join subscriptions s on s.user_id = u.id and s.plan = 'team'
          where u.email not like '%0@example.com' group by u.plan order by u.plan`,
      )
    await database.query(
      `create function interrupt() returns trigger language plpgsql as $$ begin raise 'interrupted'; end $$`,
    )
    await database.query(
      `create trigger interrupt before update on users for each row
       when (old.email = 'many1999@example.com') execute function interrupt()`,
    )
    const move = () => peage(cwd, ['plans', 'move', 'gold', 'team', '--yes'])
    const interrupted = await move()
    expect(interrupted).toMatchObject({ exit: 1, stdout: '' })
    expect(interrupted.stderr).toMatch(/^moved 1000 of 2500\nerror: /)
    expect(await counts()).toEqual([
      { plan: 'gold', users: 1500, events: 0, subscriptions: 0 },
      { plan: 'team', users: 1000, events: 1000, subscriptions: 1000 },
    ])
    await database.query('drop trigger interrupt on users')
    expect(await move()).toEqual({
      exit: 0,
      stdout: '1500 users were moved from plan gold to plan team\n',
      stderr: 'moved 1000 of 1500\nmoved 1500 of 1500\n',
    })
    expect(await counts()).toEqual([{ plan: 'team', users: 2500, events: 2500, subscriptions: 2500 }])
  })
})

describe('peage users through a gateway whose plans differ from the file', () => {
  const { cwd, gateway, inside } = gatewayPlace()

  it('accepts the plans of the gateway, not the plans of the file', async () => {
    const { host } = new URL(String(gateway().server.adminAddress))
    const file = writeConfiguration(cwd, {
      name: 'other.yaml',
      admin: `admin: { listen: '${host}', token: a-token-for-operators-0123456789 }`,
      routing: customPlans,
    })
    await inside(database =>
      database.query("insert into users (email, password_hash) values ('a@example.com', 'x')"),
    )
    expect(await peage(cwd, ['plans', 'move', 'unused', 'team', '--yes', '-c', file])).toMatchObject({
      exit: 2,
    })
    const setPlan = (plan: string) => peage(cwd, ['users', 'set-plan', 'a@example.com', plan, '-c', file])
    expect(await setPlan('premium')).toMatchObject({ exit: 0 })
    expect(await setPlan('team')).toEqual({
      exit: 2,
      stdout: '',
      stderr: "error: the plan 'team' is not configured. Allowed choices are free, premium, pro.\n",
    })
  })
})
