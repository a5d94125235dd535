// Operators see and revoke the API keys of users.
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { adminWithTokens, tokens } from '../support/operator-tokens.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('the API keys of a user in the admin API', setup => {
  const at = journey(setup, { admin: adminWithTokens })
  const ask = (method: string, path: string, token = tokens.all) =>
    call(at.gateway.admin, method, `/admin/v1/users/${path}`, { token })
  const create = async (access: string, name: string, more: object = {}) => {
    const body = { name, ...more }
    const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token: access, body })
    expect(answer.status).toBe(201)
    return answer.body as { id: string; key: string }
  }
  const createApiToken = async (access: string) =>
    String((await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: access })).body.api_token)
  const use = async (key: string) =>
    (await call(at.gateway.url, 'GET', '/any/x', { headers: { 'x-api-key': key } })).status
  const auditOf = (id: number) =>
    at.gateway.sql<{ route: string; changes: object }>(
      'select operator, method, route, changes, status from admin_audit where user_id = $1 order by id',
      [id],
    )
  const keys = '/admin/v1/users/:id/keys'

  it('are listed newest first, including revoked keys but not the key `api-token`, to every role except "billing"', async () => {
    const user = await newUser(at.gateway, 'pro')
    await createApiToken(user.access)
    const old = await create(user.access, 'old')
    at.gateway.clock.at += 1_000
    const { key, ...young } = await create(user.access, 'young', { expires_in_days: 1 })
    at.gateway.clock.at += 1_000
    await call(at.gateway.url, 'DELETE', `/api/v1/auth/keys/${old.id}`, { token: user.access })
    const { body } = await ask('GET', `${user.id}`)
    expect(body.api_keys).toEqual([
      { ...young, revoked_at: null },
      {
        id: old.id,
        name: 'old',
        prefix: old.key.slice(0, 12),
        scopes: null,
        created_at: expect.any(String),
        expires_at: null,
        last_used_at: null,
        revoked_at: new Date(at.gateway.clock.at).toISOString(),
      },
    ])
    expect(JSON.stringify(body)).not.toContain(key)
    expect(JSON.stringify(body)).not.toContain(createHash('sha256').update(key).digest('hex'))
    for (const role of ['support', 'read'] as const)
      expect((await ask('GET', `${user.id}`, tokens[role])).body.api_keys).toEqual(body.api_keys)
    expect((await ask('GET', `${user.id}`, tokens.billing)).body).not.toHaveProperty('api_keys')
  })

  it('are in the export for the user and in the export for operators', async () => {
    const user = await newUser(at.gateway, 'pro')
    await create(user.access, 'CI')
    const revoked = await create(user.access, 'gone')
    await ask('DELETE', `${user.id}/keys/${revoked.id}`)
    const { api_keys } = (await ask('GET', `${user.id}`)).body
    expect(api_keys).toHaveLength(2)
    expect((await ask('GET', `${user.id}/export`)).body.api_keys).toEqual(api_keys)
    const own = await call(at.gateway.url, 'GET', '/api/v1/auth/account/export', { token: user.access })
    expect(own.body.api_keys).toEqual(api_keys)
  })

  it('can be revoked one by one; the next request with the key is refused, and the audit log contains its ID', async () => {
    const user = await newUser(at.gateway, 'pro')
    const [one, other] = [await create(user.access, 'one'), await create(user.access, 'other')]
    const apiToken = await createApiToken(user.access)
    const [{ id } = { id: 0 }] = await at.gateway.sql<{ id: number }>(
      'select id from api_tokens where user_id = $1',
      [user.id],
    )
    for (const key of [one.key, other.key, apiToken]) expect(await use(key)).toBe(200)
    expect((await ask('DELETE', `${user.id}/keys/${one.id}`, tokens.support)).status).toBe(204)
    expect([await use(one.key), await use(other.key), await use(apiToken)]).toEqual([401, 200, 200])
    expect((await ask('DELETE', `${user.id}/keys/api-token-${id}`)).status).toBe(204)
    expect([await use(other.key), await use(apiToken)]).toEqual([200, 401])
    const entry = (operator: string, key: string) => ({
      ...{ operator, method: 'DELETE', route: `${keys}/:key`, changes: { key }, status: 204 },
    })
    expect(await auditOf(user.id)).toEqual([entry('support', one.id), entry('all', `api-token-${id}`)])
  })

  it('can be revoked all at once, including the key `api-token`', async () => {
    const user = await newUser(at.gateway, 'pro')
    const given = [
      (await create(user.access, 'a')).key,
      (await create(user.access, 'b')).key,
      await createApiToken(user.access),
    ]
    for (const key of given) expect(await use(key)).toBe(200)
    for (let i = 0; i < 2; i += 1) expect((await ask('DELETE', `${user.id}/keys`)).status).toBe(204)
    for (const key of given) expect(await use(key)).toBe(401)
    expect(await auditOf(user.id)).toEqual(
      [1, 2].map(() => ({ operator: 'all', method: 'DELETE', route: keys, changes: {}, status: 204 })),
    )
  })

  it('do not change if an unknown key is revoked; the status is 204 if the user exists, otherwise 404', async () => {
    const user = await newUser(at.gateway, 'pro')
    const stranger = await newUser(at.gateway, 'pro')
    const { id, key } = await create(user.access, 'kept')
    const unknown = ['x', '%00', '%F0%9F%94%91', 'api-token-0', 'x'.repeat(5_000), id.toUpperCase()]
    for (const text of [...unknown, '6b3f8a2e-0000-4000-8000-000000000000'])
      expect([text, (await ask('DELETE', `${user.id}/keys/${text}`)).status]).toEqual([text, 204])
    expect((await ask('DELETE', `${stranger.id}/keys/${id}`)).status).toBe(204)
    expect(await use(key)).toBe(200)
    const changes = (await auditOf(user.id)).map(entry => entry.changes)
    // If the text in the path cannot be the ID of a key, the audit log contains the nil UUID instead.
    const nil = { key: '00000000-0000-0000-0000-000000000000' }
    expect(changes).toEqual([...unknown.map(() => nil), { key: '6b3f8a2e-0000-4000-8000-000000000000' }])
    for (const path of [`999999999/keys/${id}`, '999999999/keys', 'x/keys'])
      expectRefusal(await ask('DELETE', path), 404, 'user_not_found', 'Utilisateur introuvable')
    expect(
      await at.gateway.sql('select 1 from admin_audit where user_id = 999999999 and status = 204'),
    ).toEqual([])
    expect(await use(key)).toBe(200)
  })

  it('are not revoked if the audit entry cannot be stored', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { id, key } = await create(user.access, 'kept')
    expect(await use(key)).toBe(200)
    await at.gateway.sql('alter table admin_audit rename to admin_audit_away')
    try {
      for (const path of [`${user.id}/keys/${id}`, `${user.id}/keys`])
        expect((await ask('DELETE', path)).status).toBe(503)
    } finally {
      await at.gateway.sql('alter table admin_audit_away rename to admin_audit')
    }
    expect(await use(key)).toBe(200)
  })
})
