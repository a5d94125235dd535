// Users read, export and delete their own account.
import { describe, expect, it } from 'vitest'
import { accountOperations } from '../../src/endpoints/account.ts'
import { emailOperations } from '../../src/endpoints/email.ts'
import { sessionOperations } from '../../src/endpoints/own-sessions.ts'
import { passwordOperations } from '../../src/endpoints/password.ts'
import type { Operation } from '../../src/openapi/operation.ts'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const path = '/api/v1/auth/account'
const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/)
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)

describeOverSetups('a user’s own account', setup => {
  const at = journey(
    setup,
    { rateLimits: 'rate_limits: { login_failures: 3/5m }', limits: 'free_daily: 5' },
    upstream => `account: { deletion: true }
${routes(upstream)}`,
  )
  const ask = (method: string, token: string, more: { path?: string; body?: unknown } = {}) =>
    call(at.gateway.url, method, more.path ?? path, { token, body: more.body })
  const remove = (user: TestUser, current_password: unknown = user.password) =>
    ask('DELETE', user.access, { body: { current_password } })
  const course = (token: string) => call(at.gateway.url, 'GET', '/courses/1', { token })
  const exported = async (user: TestUser) => ask('GET', user.access, { path: `${path}/export` })
  const emit = (user_id?: number) =>
    call(at.gateway.admin, 'POST', '/admin/v1/alerts', {
      token: at.gateway.adminToken,
      body: { type: 'test', user_id },
    })
  const countOf = async (table: string, { id }: TestUser, column = 'user_id') =>
    (
      await at.gateway.sql<{ n: number }>(
        `select count(*)::integer as n from ${table} where ${column} = $1`,
        [id],
      )
    )[0]?.n

  it('shows the stored daily uses only if they are from today, and shows when they reset', async () => {
    const user = await newUser(at.gateway)
    const midnight = new Date(Math.ceil(at.gateway.clock.at / 86_400_000) * 86_400_000).toISOString()
    const account = {
      id: user.id,
      email: user.email,
      email_verified: false,
      has_password: true,
      plan: 'free',
      created_at: instant,
      daily_usage: 0,
      daily_limit: 5,
      resets_at: midnight,
    }
    expectAnswer(await ask('GET', user.access), 200, account)
    const today = new Date(at.gateway.clock.at).toISOString().slice(0, 10)
    const use = (day: string) =>
      at.gateway.sql('update users set daily_usage = 3, last_usage_date = $2 where id = $1', [user.id, day])
    await use(today)
    expectAnswer(await ask('GET', user.access), 200, { ...account, daily_usage: 3 })
    await use('2026-01-01')
    expectAnswer(await ask('GET', user.access), 200, account)
    await at.gateway.sql("update users set plan = 'premium', email_verified_at = now() where id = $1", [
      user.id,
    ])
    const paying = { ...account, email_verified: true, plan: 'premium', daily_limit: null }
    expectAnswer(await ask('GET', user.access), 200, paying)
  })

  it('is exported as a file with all stored data except secrets, hashes and codes', async () => {
    const user = await newUser(at.gateway, 'pro')
    const url = 'https://nobody.invalid/hook?secret'
    const post = (path: string, body?: unknown) => ask('POST', user.access, { path, body })
    const key = await post('/api/v1/user/api-token')
    const hook = await post('/api/v1/user/webhook', { url })
    await emit(user.id)
    await at.gateway.sql(
      `insert into mails (user_id, kind, address, status, due_at, expires_at, created_at, finished_at)
       values ($1, 'password_changed', $2, 'sent', now(), now(), now(), now()),
              ($1, 'email', 'another@example.com', 'sent', now(), now(), now(), now())`,
      [user.id, user.email],
    )
    const answer = await exported(user)
    expect(answer.headers.get('content-disposition')).toBe('attachment')
    expectAnswer(answer, 200, {
      user: {
        id: user.id,
        email: user.email,
        plan: 'pro',
        is_active: 1,
        daily_usage: 0,
        last_usage_date: null,
        created_at: instant,
        email_verified_at: null,
      },
      subscription: { plan: 'free', created_at: instant, updated_at: instant },
      sessions: [
        {
          id: uuid,
          created_at: instant,
          last_used_at: instant,
          expires_at: instant,
          user_agent: expect.any(String),
        },
      ],
      api_token: { created_at: instant, last_used_at: null },
      api_keys: [],
      identities: [],
      webhook: { url, created_at: instant },
      deliveries: [expect.objectContaining({ alert_id: uuid, type: 'test', created_at: instant })],
      mails: [{ kind: 'password_changed', status: 'sent', created_at: instant, sent_at: instant }],
      usage: [],
    })
    for (const secret of [String(key.body.api_token), String(hook.body.secret), 'argon2'])
      expect(answer.text).not.toContain(secret)
  })

  it('is exported with only the newest 1,000 entries of each list', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql(
      `insert into refresh_tokens (user_id, token_hash, expires_at, session_id, created_at)
       select $1, 'exported ' || n, $2::timestamptz + interval '1 d', gen_random_uuid(), $2 - n * interval '1 s'
         from generate_series(1, 1005) as n`,
      [user.id, new Date(at.gateway.clock.at)],
    )
    await at.gateway.sql(
      `insert into mails (user_id, kind, address, status, due_at, expires_at, created_at)
       select $1, 'password_changed', $2, 'failed', now(), now(), now() + n * interval '1 s'
         from generate_series(1, 1005) as n`,
      [user.id, user.email],
    )
    await at.gateway.sql(
      `insert into webhook_deliveries (alert_id, user_id, receiver, status, due_at, created_at)
       select gen_random_uuid(), $1, 'r', 'failed', now(), now() from generate_series(1, 1005)`,
      [user.id],
    )
    const { body } = await exported(user)
    const lists = ['sessions', 'mails', 'deliveries'].map(name => body[name] as { created_at: string }[])
    expect(lists.map(list => list.length)).toEqual([1_000, 1_000, 1_000])
    expect((body.sessions as object[])[0]).toMatchObject({ user_agent: expect.any(String) })
    const times = (body.mails as { created_at: string }[]).map(one => Date.parse(one.created_at))
    expect(times).toEqual(times.toSorted((a, b) => b - a))
    const newest = await at.gateway.sql<{ id: number }>(
      'select max(id) as id from webhook_deliveries where user_id = $1',
      [user.id],
    )
    expect((body.deliveries as object[])[0]).toMatchObject(newest[0] as object)
  })

  describe('deletion', () => {
    it('deletes all data except audit entries, and frees the email', async () => {
      const [user, other] = [await newUser(at.gateway, 'pro'), await newUser(at.gateway, 'pro')]
      const key = `peage_${user.id}`
      for (const { access } of [user, other])
        await ask('POST', access, { path: '/api/v1/user/webhook', body: { url: 'https://nobody.invalid/' } })
      await giveKey(at.gateway, user, key)
      await emit(user.id)
      await emit(other.id)
      await emit()
      const alerts = async () => (await at.gateway.sql('select id from alerts')).length
      const before = await alerts()
      expectAnswer(await remove(user), 200, { message: 'Compte supprimé' })
      // The audit log of operators keeps the ID of the user.
      const tables = await at.gateway.sql<{ name: string }>(
        `select table_name as name from information_schema.columns
          where table_schema = 'public' and column_name = 'user_id' and table_name <> 'admin_audit' order by 1`,
      )
      expect(tables.length).toBeGreaterThan(7)
      for (const { name } of tables) expect([name, await countOf(name, user)]).toEqual([name, 0])
      expect(await countOf('users', user, 'id')).toBe(0)
      // Only the alert for this user is deleted. The alert for all users stays.
      expect(await alerts()).toBe(before - 1)
      expectRefusal(await course(user.access), 401, 'user_not_found', 'Utilisateur introuvable')
      const withKey = await call(at.gateway.url, 'GET', '/courses/1', { headers: { 'x-api-key': key } })
      expectRefusal(withKey, 401, 'token_invalid', 'Token invalide ou expiré')
      const { status } = await call(at.gateway.url, 'POST', '/api/v1/auth/register', {
        body: { email: user.email, password: 'un mot de passe' },
      })
      expect(status).toBe(201)
    })

    it('requires the current password, and counts a wrong password as a failed login', async () => {
      const user = await newUser(at.gateway)
      for (const wrong of ['wrong', undefined, 3]) {
        const answer = await remove(user, wrong === undefined ? null : wrong)
        expectRefusal(answer, 401, 'credentials_invalid', 'Identifiants invalides')
        expect(answer.headers.get('www-authenticate')).toBeNull()
      }
      expect((await remove(user)).headers.get('x-peage-error')).toBe('rate_limited')
      expect((await ask('GET', user.access)).status).toBe(200)
    })
  })

  describe('the endpoints for signed-in users', () => {
    const signedIn = [accountOperations, sessionOperations, passwordOperations, emailOperations]
      .flatMap(each => Object.values<Operation>(each))
      .filter(({ refusals }) => refusals[403]?.includes('bearer_required'))

    it('are exactly ten operations', () => expect(signedIn).toHaveLength(10))

    it.each(signedIn)('$method $path requires the access token of a session', async ({ method, path }) => {
      const user = await newUser(at.gateway)
      const key = `peage_key_for_${method}${path}`
      await giveKey(at.gateway, user, key)
      const send = (headers: Record<string, string>) =>
        call(at.gateway.url, method, path.replace(':id', 'x'), { headers })
      const noToken = [401, 'token_invalid', 'Token invalide ou expiré'] as const
      expectRefusal(await send({}), ...noToken)
      expectRefusal(await send({ 'x-api-key': key }), 403, 'bearer_required', "Jeton d'accès requis")
      await call(at.gateway.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: user.refresh } })
      const over = await send({ authorization: `Bearer ${user.access}` })
      expectRefusal(over, ...noToken)
      expect(over.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
      expect((await course(user.access)).status).toBe(200)
      const inactive = await newUser(at.gateway)
      await at.gateway.sql('update users set is_active = 0 where id = $1', [inactive.id])
      await expect
        .poll(async () => (await course(inactive.access)).headers.get('x-peage-error'))
        .toBe('user_not_found')
      const nobody = await send({ authorization: `Bearer ${inactive.access}` })
      expectRefusal(nobody, 401, 'user_not_found', 'Utilisateur introuvable')
    })
  })
})

describeOverSetups('a user’s own account without account.deletion', setup => {
  const at = journey(setup)

  it('refuses a deletion with 404 even if the token is invalid, and omits DELETE from the Allow header', async () => {
    const { access } = await newUser(at.gateway)
    for (const token of [access, 'no token']) {
      const answer = await call(at.gateway.url, 'DELETE', path, { token })
      expectRefusal(answer, 404, 'route_unknown', 'Route inconnue')
    }
    const answer = await call(at.gateway.url, 'POST', path, { token: access })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect((await call(at.gateway.url, 'GET', path, { token: access })).status).toBe(200)
  })
})
