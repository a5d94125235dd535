// Tests the quota guard: what it counts, when it refuses, its responses, and what ends a refusal.
import { expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { scrape } from '../support/scrape.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups, services } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'

const plans = `plans:
  - { name: free, quotas: { exports: 5/day, reports: 0, wide: 2/month } }
  - { name: team, quotas: { exports: 100/month, reports: 5/day, wide: unlimited } }
  - { name: scale, quotas: { exports: 1000/month, reports: unlimited, wide: unlimited } }
`

const routes = (upstream: string) => `${plans}upstreams:
  echo: { targets: ['${upstream}'] }
routes:
  - { name: exports, path: /exports/*, upstream: echo, quota: exports }
  - { name: triple, path: /triple, upstream: echo, quota: { name: exports, cost: 3 } }
  - { name: reports, path: /reports, upstream: echo, quota: reports, plans: [free, team] }
  - { name: wide, path: /wide, upstream: echo, quota: wide, rate_limit: 100/1m }
  - { name: plain, path: /plain, upstream: echo }
`

interface Row {
  quota: string
  period: string
  period_start: string
  used: number
}

const rowsOf = (gateway: TestGateway, { id }: TestUser) =>
  gateway.sql<Row>(
    'select quota, period, period_start, used from quota_usage where user_id = $1 order by quota, period',
    [id],
  )
const month = new Date().toISOString().slice(0, 7)

describeOverSetups('the quota of a route', setup => {
  const at = journey(setup, {}, routes)
  const get = (path: string, { access }: TestUser, method = 'GET', headers = {}) =>
    call(at.gateway.url, method, path, { token: access, headers })
  const statusesOf = async (path: string, user: TestUser, times: number) => {
    const statuses: number[] = []
    for (let i = 0; i < times; i++) statuses.push((await get(path, user)).status)
    return statuses
  }
  const change = (text: string, { id }: TestUser) => at.gateway.sql(text, [id])

  it('is counted per user, and each response contains the uses that are left', async () => {
    const user = await newUser(at.gateway, 'team')
    for (const left of [97, 94]) {
      const answer = await get('/triple', user)
      expect([answer.status, answer.headers.get('ratelimit-policy')]).toEqual([200, '"quota:exports";q=100'])
      expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"quota:exports";r=${left};t=[0-9]+$`))
    }
    expect((await get('/exports/1', user)).headers.get('ratelimit')).toContain('r=93;')
    expect(await rowsOf(at.gateway, user)).toEqual([
      { quota: 'exports', period: 'month', period_start: `${month}-01`, used: 7 },
    ])
    expect(at.upstream.received).toHaveLength(3)
    expect((await get('/exports/1', await newUser(at.gateway, 'team'))).headers.get('ratelimit')).toContain(
      'r=99;',
    )
  })

  it('refuses a request with 429 if its cost exceeds the remaining uses, but accepts a cheaper request', async () => {
    const user = await newUser(at.gateway, 'team')
    expect(await statusesOf('/triple', user, 33)).toEqual(Array(33).fill(200))
    for (let i = 0; i < 2; i++) {
      const refused = await get('/triple', user)
      expect([refused.status, refused.headers.get('x-peage-error')]).toEqual([429, 'quota_exceeded'])
      const wait = Number(refused.headers.get('retry-after'))
      const end = new Date(`${month}-01T00:00:00Z`)
      end.setUTCMonth(end.getUTCMonth() + 1)
      expect(Math.abs(Date.now() + wait * 1_000 - end.getTime())).toBeLessThan(5_000)
      expect(JSON.stringify(refused.body)).toBe(
        JSON.stringify({
          error: 'Quota atteint (plan team: 100 exports/mois)',
          quota: 'exports',
          limit: 100,
          used: 99,
          cost: 3,
          resets_at: `${end.toISOString().slice(0, 10)}T00:00:00Z`,
          upgrade_url: '/api/v1/subscription/upgrade',
        }),
      )
      expect(refused.headers.get('ratelimit-policy')).toBe('"quota:exports";q=100')
      expect(refused.headers.get('ratelimit')).toBe(`"quota:exports";r=1;t=${wait}`)
      expect(refused.headers.get('cache-control')).toBe('no-store')
    }
    expect(await statusesOf('/exports/1', user, 2)).toEqual([200, 429])
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ used: 100 }])
  })

  it('is counted per UTC day for a plan with a daily allowance', async () => {
    const user = await newUser(at.gateway)
    expect(await statusesOf('/exports/1', user, 5)).toEqual(Array(5).fill(200))
    const { body } = await get('/exports/1', user)
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
    expect(body).toMatchObject({
      error: 'Quota atteint (plan free: 5 exports/jour)',
      resets_at: `${tomorrow}T00:00:00Z`,
    })
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ period: 'day', used: 5 }])
  })

  it('accepts exactly 33 of 100 concurrent requests of cost 3 if the allowance is 100', async () => {
    const user = await newUser(at.gateway, 'team')
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await get('/triple', user)).status),
    )
    expect(statuses.filter(status => status === 200)).toHaveLength(33)
    expect(statuses.filter(status => status === 429)).toHaveLength(67)
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ used: 99 }])
  })

  it('refuses from memory, without an SQL statement, until the record, the plan or the allowance changes', async () => {
    const user = await newUser(at.gateway, 'team')
    await change(
      `insert into quota_usage values ($1, 'exports', 'month', date_trunc('month', now() at time zone 'utc'), 100)`,
      user,
    )
    expect(await statusesOf('/exports/1', user, 1)).toEqual([429])
    at.gateway.statements.length = 0
    expect(await statusesOf('/exports/1', user, 3)).toEqual([429, 429, 429])
    expect(at.gateway.statements.filter(text => text.includes('quota_usage'))).toEqual([])

    const passesSoon = () =>
      expect.poll(() => statusesOf('/exports/1', user, 1), { interval: 5 }).toEqual([200])
    await change('update quota_usage set used = 99 where user_id = $1', user)
    await passesSoon()
    expect(await statusesOf('/exports/1', user, 1)).toEqual([429])
    await change('delete from quota_usage where user_id = $1', user)
    await passesSoon()
    await change('update quota_usage set used = 100 where user_id = $1', user)
    expect(await statusesOf('/exports/1', user, 1)).toEqual([429])
    await change("update users set plan = 'scale' where id = $1", user)
    await passesSoon()
    await change("update users set plan = 'free' where id = $1", user)
    const policy = async () => (await get('/exports/1', user)).headers.get('ratelimit-policy')
    await expect.poll(policy, { interval: 5 }).toBe('"quota:exports";q=5')
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ period: 'day', used: 1 }, { period: 'month' }])
  })

  it('shows the latest number of uses in a refusal, even after a cheaper use and a change of plan', async () => {
    const user = await newUser(at.gateway, 'team')
    await change(
      `insert into quota_usage values ($1, 'exports', 'month', date_trunc('month', now() at time zone 'utc'), 98)`,
      user,
    )
    const triple = async () => {
      const { status, body, headers } = await get('/triple', user)
      return [status, body.used, headers.get('ratelimit')?.split(';')[1]]
    }
    expect(await triple()).toEqual([429, 98, 'r=2'])
    expect((await get('/exports/1', user)).status).toBe(200)
    expect(await triple()).toEqual([429, 99, 'r=1'])
    const asPlan = async (plan: string) => {
      await change(`update users set plan = '${plan}' where id = $1`, user)
      const current = async () => (await get('/plain', user)).body as { headers: Record<string, string> }
      await expect.poll(async () => (await current()).headers['x-user-plan'], { interval: 5 }).toBe(plan)
    }
    await asPlan('scale')
    expect((await triple())[0]).toBe(200)
    await asPlan('team')
    expect(await triple()).toEqual([429, 102, 'r=0'])
  })

  it('is not counted if the plan is unlimited, and refuses unknown plans and plans with the allowance 0', async () => {
    const scale = await newUser(at.gateway, 'scale')
    const free = await newUser(at.gateway)
    const wide = await get('/wide', scale)
    expect([wide.status, wide.headers.get('ratelimit')]).toEqual([
      200,
      expect.stringMatching(/^"wide";r=99;t=\d+$/),
    ])
    expect(await rowsOf(at.gateway, scale)).toEqual([])
    const unknown = await newUser(at.gateway)
    await change("update users set plan = 'gold' where id = $1", unknown)
    await expect.poll(async () => (await get('/exports/1', unknown)).status).toBe(403)
    for (const [user, current] of [
      [free, 'free'],
      [scale, 'scale'],
      [unknown, 'gold'],
    ] as const) {
      const refused = await get('/reports', user)
      expect([refused.status, refused.body]).toEqual([
        403,
        {
          error: 'Plan insuffisant',
          required: ['team'],
          current_plan: current,
          upgrade_url: '/api/v1/subscription/upgrade',
        },
      ])
    }
    expect((await get('/exports/1', unknown)).body).toMatchObject({ required: ['free', 'team', 'scale'] })
    expect((await get('/plain', unknown)).status).toBe(200)
    expect(at.upstream.received.at(-1)?.headers['x-user-plan']).toBe('gold')
    expect([...(await rowsOf(at.gateway, free)), ...(await rowsOf(at.gateway, unknown))]).toEqual([])
  })

  it('starts again at 0 when the period ends, and refuses if the period of its record starts only tomorrow', async () => {
    const user = await newUser(at.gateway)
    const move = async (days: number) => {
      await change(
        `update quota_usage set period_start = (now() at time zone 'utc')::date + ${days} where user_id = $1`,
        user,
      )
    }
    expect(await statusesOf('/exports/1', user, 6)).toEqual([200, 200, 200, 200, 200, 429])
    await move(-1)
    await expect.poll(() => statusesOf('/triple', user, 1), { interval: 5 }).toEqual([200])
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ used: 3 }])
    await move(1)
    const ahead = await get('/exports/1', user)
    expect([ahead.status, ahead.body]).toEqual([429, expect.objectContaining({ used: 3, cost: 1 })])
    expect(ahead.headers.get('ratelimit')).toContain('r=0;')
    await move(2)
    expect(await statusesOf('/exports/1', user, 1)).toEqual([200])
    expect(await statusesOf('/exports/1', user, 5)).toEqual([200, 200, 200, 200, 429])
    await move(2)
    await expect.poll(() => statusesOf('/exports/1', user, 1), { interval: 5 }).toEqual([200])
    expect(await rowsOf(at.gateway, user)).toMatchObject([
      { used: 1, period_start: new Date().toISOString().slice(0, 10) },
    ])
  })

  it.each(['20000000000000000', '9223372036854775807'])(
    'refuses with 429 if plain SQL has stored %s uses',
    async used => {
      const user = await newUser(at.gateway)
      await change(
        `insert into quota_usage values ($1, 'exports', 'day', (now() at time zone 'utc')::date, ${used})`,
        user,
      )
      const paths = ['/exports/1', '/triple']
      const answers = await Promise.all(paths.map(path => get(path, user)))
      expect(answers.map(({ status }) => status)).toEqual([429, 429])
    },
  )

  it('counts the uses of a record whose period started in the middle of the current month', async () => {
    const user = await newUser(at.gateway, 'team')
    await change(
      `insert into quota_usage values ($1, 'exports', 'month', (now() at time zone 'utc')::date, 97)`,
      user,
    )
    expect((await get('/triple', user)).headers.get('ratelimit')).toContain('r=0;')
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ used: 100, period_start: `${month}-01` }])
    expect(await statusesOf('/exports/1', user, 1)).toEqual([429])
  })

  it('counts no refused request, and no request that the gateway answers itself because of Max-Forwards: 0', async () => {
    const user = await newUser(at.gateway, 'team')
    expect((await get('/exports/1', user, 'OPTIONS', { 'max-forwards': '0' })).status).toBe(204)
    expect((await call(at.gateway.url, 'GET', '/exports/1', { token: 'bad' })).status).toBe(401)
    expect(await rowsOf(at.gateway, user)).toEqual([])
  })
})

describeWithServices('the quota of a route on Postgres', () => {
  const at = journey(services, {}, routes)

  it('refuses a request within 2 s if its use cannot be stored, does not forward it, and counts no use', async () => {
    const user = await newUser(at.gateway, 'team')
    const ask = () => call(at.gateway.url, 'GET', '/exports/1', { token: user.access })
    const failed = async () =>
      (await scrape(at.gateway.admin)).value('peage_guard_decisions_total', {
        guard: 'quota',
        decision: 'error',
      })
    expect((await ask()).status).toBe(200)
    const before = await failed()
    at.upstream.received.length = 0
    const started = performance.now()
    const answer = await at.gateway.backing.database.transaction(async tx => {
      await tx.query('select 1 from quota_usage where user_id = $1 for update', [user.id])
      return ask()
    })
    expect(performance.now() - started).toBeLessThan(2_000)
    expectRefusal(answer, 503, 'service_unavailable', 'Service indisponible')
    expect([await failed(), at.upstream.received]).toEqual([before + 1, []])
    expect((await ask()).status).toBe(200)
    expect(await rowsOf(at.gateway, user)).toMatchObject([{ used: 2 }])
  })
})

describeWithServices('100 concurrent requests of cost 3 against an allowance of 100', () => {
  it.each([
    { replicas: 2, isEmbedded: false, hasRedis: true },
    { replicas: 2, isEmbedded: false, hasRedis: false },
    { replicas: 1, isEmbedded: false, hasRedis: false },
    { replicas: 1, isEmbedded: true, hasRedis: true },
  ])('are accepted exactly 33 times: %o', async ({ replicas, isEmbedded, hasRedis }) => {
    const stores = await services.open()
    const upstream = await startUpstream()
    const gateways: TestGateway[] = []
    try {
      const used = { postgres: isEmbedded ? '' : stores.postgres, redis: hasRedis ? stores.redis : '' }
      for (let i = 0; i < replicas; i++) gateways.push(await startGateway(routes(upstream.url), used))
      const [first] = gateways as [TestGateway]
      const user = await newUser(first, 'team')
      const ask = async (index: number) => {
        const { url } = gateways[index % replicas] ?? first
        return (await call(url, 'GET', '/triple', { token: user.access })).status
      }
      const statuses = await Promise.all(Array.from({ length: 100 }, (_, index) => ask(index)))
      expect(statuses.filter(status => status === 200)).toHaveLength(33)
      expect(statuses.filter(status => status === 429)).toHaveLength(67)
      expect(upstream.received).toHaveLength(33)
      expect(await rowsOf(first, user)).toMatchObject([{ used: 99 }])
    } finally {
      await Promise.all(gateways.map(gateway => gateway.stop()))
      await upstream.close()
      await services.drop(stores)
    }
  })
})
