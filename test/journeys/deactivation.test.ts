// What a deactivation leaves behind, and how a user comes back without it, as docs/operations.md says.
import { describe, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { alone } from '../support/setups.ts'

describe('a user who was deactivated', () => {
  const at = journey(alone)

  async function withKey(): Promise<TestUser & { key: string }> {
    const user = await newUser(at.gateway, 'pro')
    const { body } = await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })
    return { ...user, key: String(body.api_token) }
  }
  const administer = (method: string, path: string, body?: unknown) =>
    call(at.gateway.admin, method, `/admin/v1/users/${path}`, { token: at.gateway.adminToken, body })
  const activate = ({ id }: TestUser, is_active: 0 | 1) => administer('PATCH', String(id), { is_active })
  const byToken = async ({ access }: TestUser) =>
    (await call(at.gateway.url, 'GET', '/any/x', { token: access })).status
  const byKey = async ({ key }: { key: string }) =>
    (await call(at.gateway.url, 'GET', '/any/x', { headers: { 'x-api-key': key } })).status
  const refreshed = async ({ refresh }: TestUser) =>
    (await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: refresh } })).status

  it('is refused, and has all of it again when activated: access token, key and session', async () => {
    const user = await withKey()
    await activate(user, 0)
    expect([await byToken(user), await byKey(user), await refreshed(user)]).toEqual([401, 401, 401])
    await activate(user, 1)
    expect([await byToken(user), await byKey(user), await refreshed(user)]).toEqual([200, 200, 200])
  })

  it('comes back without any of it where sessions and key were revoked and 15 minutes are over', async () => {
    const user = await withKey()
    await activate(user, 0)
    expect((await administer('DELETE', `${user.id}/sessions`)).status).toBe(200)
    await at.gateway.sql('update api_tokens set revoked = 1 where user_id = $1', [user.id])
    at.gateway.clock.at += 15 * 60_000 + 5_000
    await activate(user, 1)
    expect([await byToken(user), await byKey(user), await refreshed(user)]).toEqual([401, 401, 401])
  })
})
