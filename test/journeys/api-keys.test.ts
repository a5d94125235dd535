// Tests the API keys of users: their endpoints, their scopes on routes, and their expiry.
import { expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const yaml = (upstream: string) => `plans:
  - { name: free }
  - { name: pro, api_keys: 5, webhook: true }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: read, path: /read, upstream: echo, scope: 'data:read' }
  - { name: write, path: /write, upstream: echo, scope: 'data:write' }
  - { name: plain, path: /plain, upstream: echo }
  - { name: bearer, path: /bearer, upstream: echo, bearer_only: true }
`

const insufficient = 'Portée insuffisante'

describeOverSetups('the API keys of a user', setup => {
  const at = journey(setup, { rateLimits: 'rate_limits: { bad_keys: 5/1h }' }, yaml)
  const keys = (method: string, token: string, body?: unknown, id = '') =>
    call(at.gateway.url, method, `/api/v1/auth/keys${id}`, { token, body })

  it('can be created, listed, used and revoked', async () => {
    const user = await newUser(at.gateway, 'pro')
    const created = await keys('POST', user.access, {
      name: ' CI ',
      scopes: ['data:read'],
      expires_in_days: 1,
    })
    expect(created.status).toBe(201)
    const { key, ...shown } = created.body as { key: string; id: string; prefix: string }
    expect(shown).toEqual({
      id: expect.stringMatching(/^[a-z0-9-]+$/),
      name: 'CI',
      prefix: key.slice(0, 12),
      scopes: ['data:read'],
      created_at: expect.any(String),
      expires_at: expect.any(String),
      last_used_at: null,
    })
    expectAnswer(await keys('GET', user.access), 200, {
      keys: [shown],
      limit: 5,
      available_scopes: ['data:read', 'data:write'],
    })
    const get = (path: string) => call(at.gateway.url, 'GET', path, { headers: { 'x-api-key': key } })
    expect((await get('/read')).status).toBe(200)
    expectRefusal(await get('/write'), 403, 'scope_insufficient', {
      error: insufficient,
      required: 'data:write',
    })
    expectRefusal(await get('/plain'), 403, 'scope_insufficient', { error: insufficient, required: null })
    expectRefusal(await get('/bearer'), 403, 'bearer_required', "Jeton d'accès requis")
    expectAnswer(await keys('DELETE', user.access, undefined, `/${shown.id}`), 200, {
      message: 'Clé révoquée',
    })
    expect((await get('/read')).status).toBe(401)
    expectRefusal(
      await keys('DELETE', user.access, undefined, `/${shown.id}`),
      404,
      'key_unknown',
      'Clé introuvable',
    )
    expectAnswer(await keys('DELETE', user.access), 200, { message: 'Clés révoquées', revoked: 0 })
  })

  it('are refused after their expiry, count as bad keys, and can be neither listed nor revoked', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { key, id } = (await keys('POST', user.access, { name: 'old' })).body as { key: string; id: string }
    await at.gateway.sql("update api_keys set expires_at = now() - interval '1 h' where id = $1", [id])
    const get = () => call(at.gateway.url, 'GET', '/plain', { headers: { 'x-api-key': key } })
    await expect.poll(async () => (await get()).status).toBe(401)
    const statuses: number[] = []
    for (let i = 0; i < 4; i += 1) statuses.push((await get()).status)
    expect(statuses.at(-1)).toBe(429)
    expect((await keys('GET', user.access)).body).toMatchObject({ keys: [] })
    expectAnswer(await keys('DELETE', user.access), 200, { message: 'Clés révoquées', revoked: 0 })
    expectRefusal(
      await keys('DELETE', user.access, undefined, `/${id}`),
      404,
      'key_unknown',
      'Clé introuvable',
    )
  })

  it('can be created, after a reload, only with scopes of the new routes', async () => {
    const user = await newUser(at.gateway, 'pro')
    const named = (scope: string) => keys('POST', user.access, { name: 'one', scopes: [scope] })
    expectRefusal(await named('data:new'), 400, 'scope_invalid', 'Portée invalide')
    await at.gateway.configure(['data:write', 'data:new'])
    expect((await keys('GET', user.access)).body).toMatchObject({
      available_scopes: ['data:new', 'data:read'],
    })
    expect((await named('data:new')).status).toBe(201)
    expectRefusal(await named('data:write'), 400, 'scope_invalid', 'Portée invalide')
  })

  it('are deleted by a running gateway 30 days after their revocation', async () => {
    const stores = await setup.open()
    const gateway = await startGateway(yaml(at.upstream.url), stores)
    try {
      const { id } = await newUser(gateway, 'pro')
      await gateway.sql(
        `insert into api_keys (user_id, token_hash, name, prefix, revoked_at)
         values ($1, 'dead', '', '', now() - interval '31 days'), ($1, 'late', '', '', now() - interval '29 days')`,
        [id],
      )
      const rest = () => gateway.sql('select token_hash from api_keys where user_id = $1', [id])
      await expect.poll(rest, { timeout: 15_000 }).toEqual([{ token_hash: 'late' }])
    } finally {
      await gateway.stop()
      await setup.drop(stores)
    }
  })
})
