// Operators define the plans. Accounts get the first plan, and a plan that is not configured has the least rights.
import { beforeAll, describe, expect, it } from 'vitest'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups, eitherSetup, services } from '../support/setups.ts'

const plans = `plans:
  - { name: starter, quotas: { exports: 100/month, reports: 0 }, rate_limit: 1000/1500ms }
  - { name: team, quotas: { exports: 1000/month, reports: unlimited }, api_keys: 2 }
  - { name: scale, quotas: { exports: unlimited, reports: 5/day }, api_keys: 10, webhook: true }
`

const yaml = (upstream: string) => `${plans}
subscription: { upgrade_url: 'https://pay.example.com/{plan}/{user_id}' }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: any, path: /any, upstream: echo }
  - { name: paid, path: /paid, upstream: echo, plans: [team, scale] }
  - { name: reports, path: /reports, upstream: echo, quota: reports, plans: [starter, team] }
`

const settings = { limits: '' }
const insufficient = (current_plan: string, required: string[]) => ({
  error: 'Plan insuffisant',
  required,
  current_plan,
  upgrade_url: '/api/v1/subscription/upgrade',
})

const soon = { timeout: 10_000, interval: 20 }
const warning = 'users have a plan that is not configured'

/** Returns the level, the plan and the number of users of each warning in the log. */
function warned(gateway: TestGateway): string[] {
  const lines = gateway.log.map(line => JSON.parse(line))
  return lines
    .filter(({ msg }) => msg === warning)
    .map(({ level, plan, users }) => `${level} ${plan} ${users}`)
}

describeOverSetups('the plan of a user', setup => {
  const at = journey(setup, settings, yaml)
  const ask = (method: string, path: string, token?: string, body?: unknown) =>
    call(at.gateway.url, method, path, { body, ...(token === undefined ? {} : { token }) })
  const admin = (method: string, path: string, body?: unknown) =>
    call(at.gateway.admin, method, path, { body, token: at.gateway.adminToken })
  const stored = (email: string) =>
    at.gateway.sql(
      'select u.plan, s.plan as subscribed from users u left join subscriptions s on s.user_id = u.id where email = $1',
      [email],
    )
  let legacy: TestUser
  beforeAll(async () => {
    legacy = await newUser(at.gateway, 'legacy')
  })

  describe('of a new account', () => {
    it('is the first plan, unless an operator names another configured plan', async () => {
      const [email, password] = ['new@example.com', 'correct horse battery']
      expect((await ask('POST', '/api/v1/auth/register', undefined, { email, password })).status).toBe(201)
      expect((await ask('POST', '/api/v1/auth/login', undefined, { email, password })).body.plan).toBe(
        'starter',
      )
      const made = await admin('POST', '/admin/v1/users', { email: 'made@example.com' })
      expect(made.body.plan).toBe('starter')
      for (const one of [email, 'made@example.com'])
        expect(await stored(one)).toEqual([{ plan: 'starter', subscribed: 'starter' }])
      await admin('POST', '/admin/v1/users', { email: 'chosen@example.com', plan: 'team' })
      expect(await stored('chosen@example.com')).toEqual([{ plan: 'team', subscribed: 'team' }])
    })

    it('is `free` if plain SQL inserts the account without a plan; plain SQL can set any name that matches the pattern', async () => {
      await at.gateway.sql("insert into users (email, password_hash) values ('sql@example.com', 'x')")
      expect(await stored('sql@example.com')).toEqual([{ plan: 'free', subscribed: null }])
      await at.gateway.sql("update users set plan = 'z-9_' where email = 'sql@example.com'")
      for (const wrong of ['Team', '9a', '', 'a'.repeat(33), 'a\n', 'é'])
        await expect(
          at.gateway.sql("update users set plan = $1 where email = 'sql@example.com'", [wrong]),
        ).rejects.toMatchObject({ code: '23514' })
      await at.gateway.sql("delete from users where email = 'sql@example.com'")
    })
  })

  describe('given by an operator', () => {
    it.each(['free', 'legacy', 'Team', 'team ', '', null, 1, ['team']])(
      'is refused with 400 plan_invalid if it is not configured: %j',
      async plan => {
        const change = await admin('PATCH', `/admin/v1/users/${legacy.id}`, { plan })
        expectRefusal(change, 400, 'plan_invalid', 'Plan invalide')
        const creation = await admin('POST', '/admin/v1/users', { email: 'no@example.com', plan })
        expectRefusal(creation, 400, 'plan_invalid', 'Plan invalide')
        expect(await stored('no@example.com')).toEqual([])
      },
    )

    it('can be any valid plan name in a search for users, even if no such plan is configured', async () => {
      const found = await admin('GET', '/admin/v1/users?plan=legacy')
      expect((found.body.users as TestUser[]).map(({ id }) => id)).toEqual([legacy.id])
      expect((await admin('GET', '/admin/v1/users?plan=unused-plan_1')).body.users).toEqual([])
      for (const wrong of ['Team', '', '9', 'a'.repeat(33)])
        expectRefusal(
          await admin('GET', `/admin/v1/users?plan=${wrong}`),
          400,
          'plan_invalid',
          'Plan invalide',
        )
    })
  })

  describe('if it is not configured', () => {
    it('reaches the upstream under its stored name, also with an API key that was created earlier', async () => {
      await giveKey(at.gateway, legacy, 'peage_key_of_the_legacy_plan')
      for (const headers of [
        { authorization: `Bearer ${legacy.access}` },
        { 'x-api-key': 'peage_key_of_the_legacy_plan' },
      ]) {
        expect((await call(at.gateway.url, 'GET', '/any', { headers })).status).toBe(200)
        expect(at.upstream.received.at(-1)?.headers['x-user-plan']).toBe('legacy')
      }
    })

    it.each([
      ['GET', '/paid', ['team', 'scale']],
      ['GET', '/reports', ['team']],
      ['POST', '/api/v1/user/api-token', ['team', 'scale']],
      ['DELETE', '/api/v1/user/api-token', ['team', 'scale']],
      ['POST', '/api/v1/user/webhook', ['scale']],
      ['DELETE', '/api/v1/user/webhook', ['scale']],
    ])(
      'is refused by %s %s with 403, and the response lists the plans %j',
      async (method, path, required) => {
        const answer = await ask(method, path, legacy.access)
        expectRefusal(answer, 403, 'plan_insufficient', insufficient('legacy', required))
      },
    )

    it('prevents new alerts to the user, and operators cannot retry deliveries to the user', async () => {
      const user = await newUser(at.gateway, 'scale')
      const body = { url: 'https://receiver.invalid/' }
      expect((await ask('POST', '/api/v1/user/webhook', user.access, body)).status).toBe(201)
      const emit = () => admin('POST', '/admin/v1/alerts', { type: 'x', user_id: user.id })
      expectAnswer(await emit(), 202, { deliveries: 1 })
      const list = await admin('GET', `/admin/v1/deliveries?user_id=${user.id}`)
      const [{ id }] = list.body.deliveries as [{ id: number }]
      await at.gateway.sql("update users set plan = 'legacy' where id = $1", [user.id])
      expectAnswer(await emit(), 202, { deliveries: 0 })
      const retry = await admin('POST', `/admin/v1/deliveries/${id}/retry`)
      expectRefusal(retry, 409, 'delivery_over', 'Livraison terminée')
      await at.gateway.sql('delete from users where id = $1', [user.id])
    })
  })

  it('decides which users may make a key and register a webhook', async () => {
    const [starter, team] = [await newUser(at.gateway, 'starter'), await newUser(at.gateway, 'team')]
    const key = await ask('POST', '/api/v1/user/api-token', starter.access)
    expectRefusal(key, 403, 'plan_insufficient', insufficient('starter', ['team', 'scale']))
    expect((await ask('POST', '/api/v1/user/api-token', team.access)).status).toBe(201)
    const webhook = await ask('POST', '/api/v1/user/webhook', team.access, { url: 'https://a.invalid/' })
    expectRefusal(webhook, 403, 'plan_insufficient', insufficient('team', ['scale']))
  })

  it.each([
    ['starter', 'team', ['team', 'scale'], ['starter', 'legacy', 'free']],
    ['scale', null, [], ['scale', 'team', undefined]],
    ['legacy', null, ['starter', 'team', 'scale'], ['legacy', undefined]],
  ])(
    'with the name %s has the default upgrade %s, and can be upgraded to %j, but not to %j',
    async (plan, next, higher, refused) => {
      const user = await newUser(at.gateway, plan)
      const address = (to: string) => `https://pay.example.com/${to}/${user.id}`
      expectAnswer(await ask('GET', '/api/v1/subscription/upgrade', user.access), 200, {
        current_plan: plan,
        plans: ['starter', 'team', 'scale'],
        checkout_url: next === null ? null : address(next),
      })
      const upgrade = (to?: string) => ask('POST', '/api/v1/subscription/upgrade', user.access, { plan: to })
      for (const to of higher) {
        const { status, headers } = await upgrade(to)
        expect([status, headers.get('location')]).toEqual([303, address(to)])
      }
      if (next !== null) expect((await upgrade()).headers.get('location')).toBe(address(next))
      for (const to of refused) expectRefusal(await upgrade(to), 400, 'plan_invalid', 'Plan invalide')
      await at.gateway.sql('delete from users where id = $1', [user.id])
    },
  )

  it('is counted by GET /admin/v1/plans, which includes inactive users and unknown plans', async () => {
    await at.gateway.sql('delete from users')
    await at.gateway.sql(
      `insert into users (email, password_hash, plan, is_active)
       select plan || n || '@example.com', 'x', plan, n % 2
         from (values ('team', 3), ('old', 1), ('legacy', 2)) as wanted (plan, users), generate_series(1, users) n`,
    )
    expectAnswer(await admin('GET', '/admin/v1/plans'), 200, {
      plans: [
        {
          name: 'starter',
          users: 0,
          quotas: { exports: '100/month', reports: '0' },
          rate_limit: { requests: 1000, window_seconds: 2 },
          api_keys: 0,
          webhook: false,
        },
        {
          name: 'team',
          users: 3,
          quotas: { exports: '1000/month', reports: 'unlimited' },
          rate_limit: null,
          api_keys: 2,
          webhook: false,
        },
        {
          name: 'scale',
          users: 0,
          quotas: { exports: 'unlimited', reports: '5/day' },
          rate_limit: null,
          api_keys: 10,
          webhook: true,
        },
      ],
      unknown: [
        { name: 'legacy', users: 2 },
        { name: 'old', users: 1 },
      ],
    })
  })
})

describe('a gateway without plans that have keys or webhooks', () => {
  it('refuses to create keys and webhooks, and the response lists no required plans', async () => {
    const setup = eitherSetup()
    const stores = await setup.open()
    const gateway = await startGateway('plans: [{ name: only }]\nupstreams: {}\n', stores, settings)
    try {
      const { access: token } = await newUser(gateway, 'only')
      for (const path of ['/api/v1/user/api-token', '/api/v1/user/webhook']) {
        const answer = await call(gateway.url, 'POST', path, { token })
        expectRefusal(answer, 403, 'plan_insufficient', insufficient('only', []))
      }
    } finally {
      await gateway.stop()
      await setup.drop(stores)
    }
  })
})

describe('a gateway with a plan named `undefined`', () => {
  it('requires this plan to create the key `api-token`, but not to show the usage', async () => {
    const setup = eitherSetup()
    const stores = await setup.open()
    const plans = 'plans: [{ name: free }, { name: undefined, api_keys: 1 }]'
    const gateway = await startGateway(`${plans}\nupstreams: {}\n`, stores, settings)
    try {
      const { access: token } = await newUser(gateway)
      for (let i = 0; i < 2; i++) {
        expect((await call(gateway.url, 'GET', '/api/v1/auth/usage', { token })).status).toBe(200)
        const answer = await call(gateway.url, 'POST', '/api/v1/user/api-token', { token })
        expectRefusal(answer, 403, 'plan_insufficient', insufficient('free', ['undefined']))
      }
    } finally {
      await gateway.stop()
      await setup.drop(stores)
    }
  })
})

describeWithServices('a gateway whose users have unknown plans', () => {
  it('warns once per plan at the start and after a reload, and serves requests even if it cannot count the users', async () => {
    const stores = await services.open()
    const start = () => startGateway(yaml('http://127.0.0.1:1'), stores, settings)
    let gateway = await start()
    try {
      await gateway.sql(
        `insert into users (email, password_hash, plan)
         select plan || '@example.com', 'x', plan from unnest(array['team', 'old', 'legacy']) plan`,
      )
      expect(warned(gateway)).toEqual([])
      await gateway.stop()

      gateway = await start()
      await expect.poll(() => warned(gateway), soon).toEqual(['40 legacy 1', '40 old 1'])
      gateway.log.length = 0
      await gateway.configure(['  - { name: starter', '  - { name: old }\n  - { name: starter'])
      await expect.poll(() => warned(gateway), soon).toEqual(['40 legacy 1'])

      await gateway.sql('alter table users rename column plan to hidden')
      await gateway.reload()
      await expect.poll(() => gateway.log.join(''), soon).toContain('users of unknown plans not counted')
      expect((await call(gateway.url, 'GET', '/.well-known/jwks.json')).status).toBe(200)
      expectRefusal(
        await call(gateway.admin, 'GET', '/admin/v1/plans', { token: gateway.adminToken }),
        503,
        'service_unavailable',
        'Service indisponible',
      )
    } finally {
      await gateway.stop()
      await services.drop(stores)
    }
  })

  it('shows null instead of the numbers of users if the count takes longer than a second', async () => {
    const stores = await services.open()
    const gateway = await startGateway(yaml('http://127.0.0.1:1'), stores, settings)
    try {
      await gateway.backing.database.transaction(async tx => {
        await tx.query('lock table users in access exclusive mode')
        const { status, body } = await call(gateway.admin, 'GET', '/admin/v1/plans', {
          token: gateway.adminToken,
        })
        const { plans: shown, unknown } = body as { plans: { users: unknown }[]; unknown: unknown }
        expect([status, shown.map(({ users }) => users), unknown]).toEqual([200, [null, null, null], null])
      })
    } finally {
      await gateway.stop()
      await services.drop(stores)
    }
  })
})
