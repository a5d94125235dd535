// Tests API keys at the endpoints of the gateway. Most endpoints refuse API keys. A few endpoints accept the key of
// `/api/v1/user/api-token`.
import { expect, it } from 'vitest'
import { accountOperations } from '../../src/endpoints/account.ts'
import { authOperations } from '../../src/endpoints/auth.ts'
import { emailOperations } from '../../src/endpoints/email.ts'
import { identityOperations } from '../../src/endpoints/identities.ts'
import { showKeys } from '../../src/endpoints/jwks.ts'
import { keyOperations } from '../../src/endpoints/keys.ts'
import { sessionOperations } from '../../src/endpoints/own-sessions.ts'
import { passwordOperations } from '../../src/endpoints/password.ts'
import { resetOperations } from '../../src/endpoints/reset.ts'
import { upgradeOperations } from '../../src/endpoints/upgrade.ts'
import { usageOperations } from '../../src/endpoints/usage.ts'
import { userOperations } from '../../src/endpoints/user.ts'
import type { Operation } from '../../src/openapi/operation.ts'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { mailSection } from '../support/mailed.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const operations: Operation[] = [
  ...[
    accountOperations,
    authOperations,
    emailOperations,
    identityOperations,
    keyOperations,
    passwordOperations,
  ],
  ...[resetOperations, sessionOperations, upgradeOperations, usageOperations, userOperations, { showKeys }],
].flatMap(each => Object.values<Operation>(each))
/** The operations that need a credential. `confirmChange` needs one only if the body has no token from a mail. */
const guarded = operations.filter(
  operation => operation.caller === 'user' || operation === emailOperations.confirmChange,
)
const closed = guarded.filter(operation => operation !== usageOperations.show)
const withoutCredential = operations.filter(operation => !guarded.includes(operation))
const titled = (all: readonly Operation[]) => all.map(each => [`${each.method} ${each.path}`, each] as const)

const bearerRequired = [403, 'bearer_required', "Jeton d'accès requis"] as const

describeOverSetups('an API key at an endpoint of the gateway', setup => {
  const at = journey(
    setup,
    {},
    upstream => `${routes(upstream)}${mailSection()}account: { deletion: true }\n`,
  )
  const keys = (method: string, { access: token }: TestUser, id = '', body?: unknown) =>
    call(at.gateway.url, method, `/api/v1/auth/keys${id}`, { token, body })
  async function namedKey(user: TestUser): Promise<string> {
    return String((await keys('POST', user, '', { name: 'CI' })).body.key)
  }
  const send = (method: string, path: string, key: string, body?: unknown) =>
    call(at.gateway.url, method, path.replace(':id', 'x'), { headers: { 'x-api-key': key }, body })

  it('is refused by at least 20 endpoints', () => {
    expect(closed.length).toBeGreaterThanOrEqual(20)
    expect(withoutCredential.map(({ path }) => path)).toContain('/api/v1/auth/login')
  })

  it.each(titled(closed))('is refused before all other checks by %s', async (_, { method, path }) => {
    const user = await newUser(at.gateway, 'pro')
    const key = await namedKey(user)
    expectRefusal(await send(method, path, key), ...bearerRequired)
    // Now other checks would fail too: the plan of the user has no keys and no webhook, and the body is invalid.
    await at.gateway.sql("update users set plan = 'free' where id = $1", [user.id])
    const body = method === 'GET' ? undefined : 'no JSON'
    expectRefusal(await send(method, path, key, body), ...bearerRequired)
    if (path === emailOperations.confirmChange.path) return
    // The body exceeds the size limit of the account endpoints.
    if (method !== 'GET') expectRefusal(await send(method, path, key, 'x'.repeat(100_000)), ...bearerRequired)
  })

  it('is accepted by the endpoint that lists the quotas, even if its list of scopes is empty', async () => {
    const user = await newUser(at.gateway, 'pro')
    const key = await namedKey(user)
    await at.gateway.sql("update api_keys set scopes = '{}' where user_id = $1", [user.id])
    expect((await send('GET', usageOperations.show.path, key)).status).toBe(200)
  })

  it.each(titled(withoutCredential))(
    'is ignored by %s, which needs no credential',
    async (_, { method, path }) => {
      const answer = await send(method, path, 'peage_unknown')
      expect(String(answer.headers.get('x-peage-error'))).not.toMatch(/^(bearer_required|token_invalid)$/)
    },
  )

  it('is accepted by the endpoints for usage, upgrade, webhook and `api-token` if it is the key `api-token`', async () => {
    const user = await newUser(at.gateway, 'pro')
    const key = `key of ${user.email}`
    await giveKey(at.gateway, user, key)
    const open = [...Object.values(upgradeOperations), ...Object.values(userOperations), usageOperations.show]
    for (const operation of closed.filter(each => !open.includes(each as never)))
      expectRefusal(await send(operation.method, operation.path, key), ...bearerRequired)
    expect((await send('GET', usageOperations.show.path, key)).status).toBe(200)
    expect((await send('GET', upgradeOperations.show.path, key)).status).toBe(200)
    expect(
      (await send('POST', userOperations.registerWebhook.path, key, { url: 'https://8.8.8.8/' })).status,
    ).toBe(201)
    const next = String((await send('POST', userOperations.makeApiToken.path, key)).body.api_token)
    expect((await send('GET', '/any/x', key)).status).toBe(401)
    expect((await send('DELETE', userOperations.revokeApiToken.path, next)).status).toBe(200)
    expect((await send('GET', '/any/x', next)).status).toBe(401)
  })

  it('if it is the key `api-token`, is listed, can be deleted by its id, and does not count towards the limit', async () => {
    const user = await newUser(at.gateway, 'pro')
    for (let i = 0; i < 5; i += 1) await namedKey(user)
    const { api_token: key, created_at } = (
      await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })
    ).body
    expectRefusal(await keys('POST', user, '', { name: 'CI' }), 409, 'key_limit_reached', {
      error: 'Nombre maximal de clés atteint',
      limit: 5,
    })
    const listed = (await keys('GET', user)).body.keys as Record<string, unknown>[]
    expect(listed).toHaveLength(6)
    const token = listed.find(({ name }) => name === 'api-token')
    expect(token).toEqual({
      ...{ id: expect.stringMatching(/^[a-z0-9-]+$/), name: 'api-token', prefix: null, scopes: null },
      ...{ created_at, expires_at: null, last_used_at: null },
    })
    const other = await newUser(at.gateway, 'pro')
    const unknown = [404, 'key_unknown', 'Clé introuvable'] as const
    for (const id of [token?.id, listed[0]?.id])
      expectRefusal(await keys('DELETE', other, `/${id}`), ...unknown)
    for (const id of [
      'x',
      '0',
      'api-token-',
      'api-token-0',
      'api-token-9999999999999999',
      `${listed[0]?.id}0`,
    ])
      expectRefusal(await keys('DELETE', user, `/${id}`), ...unknown)
    expectAnswer(await keys('DELETE', user, `/${token?.id}`), 200, { message: 'Clé révoquée' })
    expect((await send('GET', '/any/x', String(key))).status).toBe(401)
    expectRefusal(await keys('DELETE', user, `/${token?.id}`), ...unknown)
    await giveKey(at.gateway, user, `again ${user.email}`)
    expectAnswer(await keys('DELETE', user), 200, { message: 'Clés révoquées', revoked: 6 })
    expect((await keys('GET', user)).body.keys).toEqual([])
  })

  it('stays valid on routes after a downgrade, and can still be listed and deleted', async () => {
    const user = await newUser(at.gateway, 'pro')
    const key = await namedKey(user)
    await at.gateway.sql("update users set plan = 'free' where id = $1", [user.id])
    await expect.poll(async () => (await keys('GET', user)).body.limit).toBe(0)
    expect((await send('GET', '/any/x', key)).status).toBe(200)
    const [listed] = (await keys('GET', user)).body.keys as { id: string }[]
    expectAnswer(await keys('DELETE', user, `/${listed?.id}`), 200, { message: 'Clé révoquée' })
    expect((await send('GET', '/any/x', key)).status).toBe(401)
  })

  it('cannot be listed, created or deleted with the access token of an ended session', async () => {
    const user = await newUser(at.gateway, 'pro')
    const refresh = { refresh_token: user.refresh }
    await call(at.gateway.url, 'POST', '/api/v1/auth/logout', { body: refresh })
    for (const [method, id] of [['GET'], ['POST'], ['DELETE'], ['DELETE', '/x']] as const)
      expectRefusal(await keys(method, user, id), 401, 'token_invalid', 'Token invalide ou expiré')
  })
})
