// The admin API explains requests of users with configured plans. A reload applies changed plans and quotas.
import { describe, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { eitherSetup } from '../support/setups.ts'

const routing = (upstream: string) => `plans:
  - { name: starter, quotas: { exports: 5/day } }
  - { name: team, quotas: { exports: 1000/month } }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: exports, path: /exports, upstream: echo, quota: exports }
  - { name: open, path: /open, upstream: echo }
`

describe('plans and quotas', () => {
  const at = journey(eitherSetup(), { limits: '' }, routing)
  const explain = (as: unknown, path = '/exports') =>
    call(at.gateway.admin, 'POST', '/admin/v1/explain', {
      body: { method: 'GET', path, as },
      token: at.gateway.adminToken,
    })

  it('are explained for a caller with a given plan and a given number of uses', async () => {
    expect((await explain({ plan: 'team', used: 999 })).body).toMatchObject({
      status: null,
      route: 'exports',
    })
    const { body } = await explain({ plan: 'team', used: 1000, verified: false })
    expect(body).toMatchObject({ status: 429, request: { as: 'team' } })
    expect((body as { guards: object[] }).guards).toContainEqual({
      guard: 'quota',
      outcome: 'refuse',
      status: 429,
      error: 'quota_exceeded',
    })
    expect(at.upstream.received).toEqual([])
  })

  it.each([
    'free',
    '',
    'Team',
    'constructor',
    { plan: 'pro' },
    { plan: 'anonymous' },
    { used: 1 },
    { plan: 'team', used: -1 },
    { plan: 'team', used: '1' },
    { plan: 'team', used: 1.5 },
    { plan: 'team', verified: null },
    { user_id: 1, used: 1 },
    { user_id: 1, key: true },
    { plan: 'anonymous', key: true },
    { plan: 'team', key: false },
    { plan: 'team', key: null },
    { plan: 'team', scopes: null },
    { plan: 'team', scopes: 'a' },
    { plan: 'team', scopes: ['A'] },
    { plan: 'team', scopes: [['a']] },
  ])('are not explained for the invalid caller %j, and the error names the field `as`', async as => {
    expect(await explain(as)).toMatchObject({ status: 400, body: { field: 'as' } })
  })

  it('are explained for a caller with an API key', async () => {
    expect((await explain({ plan: 'team', key: true, used: 1 })).body).toMatchObject({
      status: null,
      headers: { request: { set: { 'x-user-key-id': expect.any(String), 'x-user-plan': 'team' } } },
    })
    const { body } = await explain({ plan: 'team', scopes: ['a'], used: 1000 })
    expect(body).toMatchObject({ status: 403, request: { as: 'team' } })
    expect((body as { guards: object[] }).guards).toContainEqual({
      guard: 'scope',
      outcome: 'refuse',
      status: 403,
      error: 'scope_insufficient',
    })
    const other = (await explain({ plan: 'team' })).body as { guards: { guard: string }[] }
    expect(other.guards.map(({ guard }) => guard)).not.toContain('scope')
  })

  it('are explained for a stored user with the uses that are stored for this user', async () => {
    const { id, access } = await newUser(at.gateway, 'starter')
    for (let i = 0; i < 4; i++) await call(at.gateway.url, 'GET', '/exports', { token: access })
    expect((await explain({ user_id: id })).body).toMatchObject({ status: null })
    await call(at.gateway.url, 'GET', '/exports', { token: access })
    expect((await explain({ user_id: id })).body).toMatchObject({ status: 429 })
    // The plan `team` counts this quota per month, so the uses that were counted per day do not matter.
    await at.gateway.sql("update users set plan = 'team' where id = $1", [id])
    expect((await explain({ user_id: id })).body).toMatchObject({ status: null })
  })

  it('are explained for a user whose stored plan is not configured', async () => {
    const { id } = await newUser(at.gateway)
    await at.gateway.sql("update users set plan = 'old-plan' where id = $1", [id])
    expect((await explain({ user_id: id })).body).toMatchObject({ status: 403, request: { as: 'old-plan' } })
    expect((await explain({ user_id: id }, '/open')).body).toMatchObject({
      status: null,
      headers: { request: { set: { 'x-user-id': String(id), 'x-user-plan': 'old-plan' } } },
    })
  })

  it('change with a reload, and the log names the changed section', async () => {
    await at.gateway.configure(['1000/month', '10/month'])
    expect((await explain({ plan: 'team', used: 10 })).body).toMatchObject({ status: 429 })
    await at.gateway.configure(['name: starter', 'name: basic'])
    expect((await explain('starter')).status).toBe(400)
    expect((await explain('basic')).body).toMatchObject({ status: null })
    const reloads = at.gateway.log.filter(line => line.includes('configuration reloaded'))
    // The gateway may also notice a saved file itself. It then reloads twice, the second time without changes.
    expect(reloads.flatMap(line => JSON.parse(line).sections ?? [])).toEqual(['plans', 'plans'])
    expect(at.gateway.refused).toEqual([])
    await at.gateway.configure(['quotas: { exports: 5/day }', 'quotas: {}'])
    expect(at.gateway.refused[0]).toContain('routes[0].quota  plan basic states no allowance')
    expect((await explain({ plan: 'basic', used: 5 })).body).toMatchObject({ status: 429 })
  })
})
