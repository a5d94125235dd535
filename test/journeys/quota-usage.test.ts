// Tests where the uses of quotas are shown: to users, to operators and in exports. Also tests how operators reset them.
import { expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const tokens = {
  all: 'a-token-for-operators-0123456789',
  read: 'a-token-of-the-auditor',
  billing: 'a-token-of-the-billing-service',
}
const admin = `, token: ${tokens.all}, tokens: { read: { token: ${tokens.read}, may: read },
  billing: { token: ${tokens.billing}, may: billing } }`

const yaml = (upstream: string) => `plans:
  - { name: starter, quotas: { exports: 100/month, reports: 0 }, rate_limit: 10/1m }
  - { name: team, quotas: { reports: 5/day, exports: 1000/month, mails: unlimited }, rate_limit: 50/89500ms }
  - { name: scale, quotas: { reports: unlimited, exports: 3/day } }
upstreams: { echo: { targets: ['${upstream}'] } }
routes: [{ name: exports, path: /exports, upstream: echo, quota: exports }]
`

const unlimited = { period: null, limit: null, used: null, remaining: null, resets_at: null }
const none = { period: null, limit: 0, used: 0, remaining: 0, resets_at: null }

describeOverSetups('the uses of quotas', setup => {
  const at = journey(setup, { limits: '', admin }, yaml)
  const ofOperator = (method: string, path: string, body?: unknown, token = tokens.all) =>
    call(at.gateway.admin, method, `/admin/v1/users/${path}`, { token, body })
  const usageOf = ({ access: token }: { access: string }) =>
    call(at.gateway.url, 'GET', '/api/v1/auth/usage', { token })

  const userOn = (plan: string) => newUser(at.gateway, plan)

  /** Stores `used` uses of a quota. @param start an SQL expression for the first day of the period */
  const store = ({ id }: { id: number }, quota: string, period: string, used: number, start = period) =>
    at.gateway.sql(
      `insert into quota_usage (user_id, quota, period, period_start, used)
       select $1, $2, $3, ${/^(day|month)$/.test(start) ? `date_trunc('${start}', today)` : start}, $4
         from (select now() at time zone 'utc' as today) as clock
       on conflict (user_id, quota, period) do update set period_start = excluded.period_start, used = $4`,
      [id, quota, period, used],
    )
  const stored = async ({ id }: { id: number }) => {
    const rows = await at.gateway.sql<{ row: string }>(
      `select quota || ' ' || period || ' ' || used as row from quota_usage where user_id = $1
       union all select 'free_daily ' || daily_usage from users where id = $1 order by row`,
      [id],
    )
    return rows.map(({ row }) => row)
  }
  async function resets() {
    const [ends] = await at.gateway.sql<{ day: string; month: string }>(
      `select to_char(date_trunc('day', today) + interval '1 day', 'YYYY-MM-DD"T00:00:00Z"') as day,
              to_char(date_trunc('month', today) + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"') as month
         from (select now() at time zone 'utc' as today) as clock`,
    )
    if (ends === undefined) throw new Error('no clock')
    return ends
  }

  it('are listed in the order of the plan, and only records of the current periods count', async () => {
    const user = await userOn('team')
    const { day, month } = await resets()
    const reports = { name: 'reports', period: 'day', limit: 5, used: 0, remaining: 5, resets_at: day }
    const exports = {
      ...{ name: 'exports', period: 'month', limit: 1000, used: 0, remaining: 1000 },
      resets_at: month,
    }
    const mails = { name: 'mails', ...unlimited }
    const head = { plan: 'team', rate_limit: { requests: 50, window_seconds: 90 } }
    expectAnswer(await usageOf(user), 200, { ...head, quotas: [reports, exports, mails] })
    expect(Object.keys((await usageOf(user)).body)).toEqual(['plan', 'rate_limit', 'quotas'])

    await store(user, 'exports', 'month', 42)
    await store(user, 'exports', 'day', 1)
    await store(user, 'reports', 'day', 7)
    await store(user, 'mails', 'day', 9)
    await store(await userOn('team'), 'exports', 'month', 100)
    await giveKey(at.gateway, user, `peage_usage_${user.id}`)
    const headers = { 'x-api-key': `peage_usage_${user.id}` }
    const quotas = [{ ...reports, used: 7, remaining: 0 }, { ...exports, used: 42, remaining: 958 }, mails]
    expectAnswer(await call(at.gateway.url, 'GET', '/api/v1/auth/usage', { headers }), 200, {
      ...head,
      quotas,
    })

    await store(user, 'exports', 'month', 42, "date_trunc('month', today) - interval '1 month'")
    await store(user, 'reports', 'day', 7, "today - interval '1 day'")
    expectAnswer(await usageOf(user), 200, { ...head, quotas: [reports, exports, mails] })
    // If the period of a record starts within 24 hours, no uses remain. A record with a later period does not count.
    await store(user, 'reports', 'day', 2, "today + interval '1 day'")
    expect((await usageOf(user)).body.quotas).toMatchObject([{ ...reports, used: 2, remaining: 0 }, {}, {}])
    await store(user, 'reports', 'day', 2, "today + interval '2 days'")
    expect((await usageOf(user)).body.quotas).toMatchObject([reports, {}, {}])
  })

  it('are null for an unlimited quota and 0 for an unused quota; a plan that is not configured has no quotas', async () => {
    const { day, month } = await resets()
    const starter = { requests: 10, window_seconds: 60 }
    const user = await userOn('starter')
    await store(user, 'exports', 'month', 3)
    const exports = { name: 'exports', limit: 100, used: 3, remaining: 97, period: 'month', resets_at: month }
    const shown = { rate_limit: starter, quotas: [exports, { name: 'reports', ...none }] }
    expectAnswer(await usageOf(user), 200, { plan: 'starter', ...shown })
    await ofOperator('PATCH', String(user.id), { plan: 'scale' })
    const daily = { name: 'exports', limit: 3, used: 0, remaining: 3, period: 'day', resets_at: day }
    const scale = { rate_limit: null, quotas: [{ name: 'reports', ...unlimited }, daily] }
    expectAnswer(await usageOf(user), 200, { plan: 'scale', ...scale })
    expectAnswer(await usageOf(await userOn('gone')), 200, { plan: 'gone', rate_limit: starter, quotas: [] })
    const anonymous = await call(at.gateway.url, 'GET', '/api/v1/auth/usage')
    expectRefusal(anonymous, 401, 'token_invalid', 'Token invalide ou expiré')
  })

  it('are the same list for the user, for operators with any reading role, and in both exports of the account', async () => {
    const user = await userOn('team')
    await store(user, 'exports', 'month', 42)
    const { quotas } = (await usageOf(user)).body
    expect(quotas).toMatchObject([{}, { used: 42 }, {}])
    for (const token of Object.values(tokens)) {
      const { status, body } = await ofOperator('GET', String(user.id), undefined, token)
      expect([status, body.usage]).toEqual([200, quotas])
    }
    const own = await call(at.gateway.url, 'GET', '/api/v1/auth/account/export', { token: user.access })
    for (const { status, body } of [own, await ofOperator('GET', `${user.id}/export`)])
      expect([status, body.usage]).toEqual([200, quotas])
    expect((await ofOperator('GET', String((await userOn('gone')).id))).body.usage).toEqual([])
  })

  it('can be reset by operators for one quota, for free_daily or for everything; each reset has an audit entry', async () => {
    const user = await userOn('team')
    const other = await userOn('team')
    const reset = (body?: unknown, id = user.id) => ofOperator('POST', `${id}/reset-usage`, body)
    const fill = async () => {
      for (const { id } of [user, other]) {
        for (const period of ['day', 'month']) await store({ id }, 'exports', period, 4)
        await store({ id }, 'reports', 'day', 5)
        await store({ id }, 'former', 'day', 6)
        await at.gateway.sql('update users set daily_usage = 3, last_usage_date = now() where id = $1', [id])
      }
    }
    await fill()
    const all = ['exports day 4', 'exports month 4', 'former day 6', 'free_daily 3', 'reports day 5']
    for (const [body, field] of [
      [{ quota: 'former' }, 'quota'],
      [{ quota: '' }, 'quota'],
      [{ quota: null }, 'quota'],
      [{ quota: ['exports'] }, 'quota'],
      [{ quota: 'constructor' }, 'quota'],
      [{ quota: 'exports', period: 'day' }, 'period'],
      ['{"quota":"exports"', undefined],
      ['"exports"', undefined],
      ['null', undefined],
    ] as const) {
      const { status, headers, body: answered } = await reset(body)
      expect([status, headers.get('x-peage-error')]).toEqual([400, 'request_invalid'])
      expect([body, answered]).toEqual([body, { error: 'Requête invalide', ...(field && { field }) }])
    }
    expectRefusal(
      await reset({ quota: 'exports' }, 999_999_999),
      404,
      'user_not_found',
      'Utilisateur introuvable',
    )
    expect(await stored(user)).toEqual(all)

    expect(await reset({ quota: 'exports' })).toMatchObject({
      status: 200,
      body: { id: user.id, daily_usage: 3 },
    })
    expect(await stored(user)).toEqual(['former day 6', 'free_daily 3', 'reports day 5'])
    expect(await reset({ quota: 'free_daily' })).toMatchObject({ status: 200, body: { daily_usage: 0 } })
    expect(await stored(user)).toEqual(['former day 6', 'free_daily 0', 'reports day 5'])
    for (const nothing of [undefined, '', {}]) {
      await fill()
      expect(await reset(nothing)).toMatchObject({ status: 200, body: { id: user.id, daily_usage: 0 } })
      expect(await stored(user)).toEqual(['free_daily 0'])
    }
    expect(await stored(other)).toEqual(all)
    const changes = await at.gateway.sql(
      "select changes from admin_audit where user_id = $1 and route like '%reset-usage' and status = 200 order by id",
      [user.id],
    )
    expect(changes).toEqual(
      [{ quota: 'exports' }, { quota: 'free_daily' }, {}, {}, {}].map(one => ({ changes: one })),
    )
  })

  it('are reset at once on the replica that receives the reset, even if it refuses requests from memory', async () => {
    const user = await userOn('team')
    await store(user, 'exports', 'month', 1000)
    const request = () => call(at.gateway.url, 'GET', '/exports', { token: user.access })
    for (let i = 0; i < 2; i++) {
      const { status, headers } = await request()
      expect([status, headers.get('x-peage-error')]).toEqual([429, 'quota_exceeded'])
      expect(headers.get('ratelimit-policy')).toBe('"plan:team";q=50;w=90, "quota:exports";q=1000')
    }
    await ofOperator('POST', `${user.id}/reset-usage`, { quota: 'exports' })
    const { status, headers } = await request()
    expect(status).toBe(200)
    expect(headers.get('ratelimit')).toMatch(/^"plan:team";r=47;t=\d+, "quota:exports";r=999;t=\d+$/)
    expect((await usageOf(user)).body.quotas).toMatchObject([{}, { used: 1, remaining: 999 }, {}])
  })
})
