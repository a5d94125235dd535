// Users reset a forgotten password with a code. No response reveals whether an account exists.
import { describe, expect, it } from 'vitest'
import { call, giveKey, login, newUser, type TestUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { codeTo, kindsTo, mailSection, otherCode } from '../support/mailed.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { isFullMatrix } from '../support/services.ts'
import { describeOverSetups, embeddedSetup } from '../support/setups.ts'

const newPassword = 'un nouveau mot de passe'
const sent = { message: 'Si ce compte existe, un e-mail a été envoyé' }
const done = { message: 'Mot de passe modifié' }
const invalid = [400, 'code_invalid', 'Code invalide ou expiré'] as const

function expectSimilarMedians(times: [number[], number[]]): void {
  const [known, unknown] = times.map(all => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0)
  expect(Math.abs(Number(known) - Number(unknown)) / Number(unknown)).toBeLessThan(0.15)
}

describeOverSetups('a forgotten password', setup => {
  const at = journey(
    setup,
    { auth: ', common_passwords: refuse' },
    upstream => routes(upstream) + mailSection(),
  )
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, headers })
  const forgot = (email: unknown) => post('password/forgot', { email })
  const reset = (body: object) => post('password/reset', { new_password: newPassword, ...body })
  const statusOf = async ({ email }: TestUser, password: string) =>
    (await post('login', { email, password })).status

  /** Creates a user who has received a code by mail. */
  async function forgetful(plan: 'free' | 'pro' = 'free') {
    const user = await newUser(at.gateway, plan)
    expectAnswer(await forgot(user.email), 202, sent)
    return { user, ...(await codeTo(at.gateway, user.email)) }
  }

  describe('the request for a code', () => {
    it('gets the same response for any valid email, but mails a code only to active accounts', async () => {
      const [user, inactive] = [await newUser(at.gateway), await newUser(at.gateway)]
      await at.gateway.sql('update users set is_active = 0 where id = $1', [inactive.id])
      const emails = [
        `  ${user.email.toUpperCase()} `,
        inactive.email,
        'nobody@example.com',
        'not one mailbox@x',
      ]
      for (const email of emails) expectAnswer(await forgot(email), 202, sent)
      expect(await kindsTo(at.gateway, user.email)).toEqual(['reset'])
      expect(await kindsTo(at.gateway, inactive.email)).toEqual([])
      expect(
        await at.gateway.sql("select from mails where address like '%nobody%' or address like '% %'"),
      ).toEqual([])
    })

    it.each([undefined, 'no address', 'a\u0000@example.com'])(
      'is refused if register would also refuse the email: %j',
      async email => expectRefusal(await forgot(email), 400, 'email_invalid', 'Email invalide'),
    )

    it('mails nothing if the email of the account is not exactly one mailbox', async () => {
      const user = await newUser(at.gateway)
      const email = `two words ${user.email}`
      await at.gateway.sql('update users set email = $2 where id = $1', [user.id, email])
      expectAnswer(await forgot(email), 202, sent)
      expect(await kindsTo(at.gateway, email)).toEqual([])
      expect(await at.gateway.sql('select from account_codes where user_id = $1', [user.id])).toEqual([])
    })

    it('is logged in the same way for a known and an unknown email, and the log contains no code', async () => {
      const user = await newUser(at.gateway)
      const before = at.gateway.log.length
      await forgot(user.email)
      await forgot('unknown@example.com')
      const { code, token } = await codeTo(at.gateway, user.email)
      const lines = at.gateway.log.slice(before).map(line => JSON.parse(line) as Record<string, unknown>)
      const told = lines
        .filter(({ msg }) => msg === 'request')
        .map(line => ['route', 'decision', 'status', 'user_id', 'bytes_sent'].map(field => line[field]))
      expect(told).toHaveLength(2)
      expect(told[0]).toEqual(told[1])
      expect(told[0]?.[3]).toBeUndefined()
      for (const secret of [code, token]) expect(JSON.stringify(lines)).not.toContain(secret)
    })

    it('takes the same time for a known and an unknown email (the medians differ by at most 15 %)', async () => {
      const user = await newUser(at.gateway)
      const times: [number[], number[]] = [[], []]
      for (let i = 0; i < (isFullMatrix ? 50 : 20); i += 1) {
        for (const [index, email] of [user.email, `nobody${i}@example.com`].entries()) {
          const start = performance.now()
          await forgot(email)
          times[index]?.push(performance.now() - start)
        }
      }
      expectSimilarMedians(times)
    })

    it('cannot be a GET or HEAD request; all endpoints for mailed codes return 405, and no code is used up', async () => {
      const { token } = await forgetful()
      for (const method of ['GET', 'HEAD'])
        for (const path of [
          'password/forgot',
          'password/reset',
          'email/verify/request',
          'email/verify',
          'email/confirm',
        ]) {
          const answer = await call(at.gateway.url, method, `/api/v1/auth/${path}?token=${token}`)
          expect([method, path, answer.status]).toEqual([method, path, 405])
        }
      expectAnswer(await reset({ token }), 200, done)
    })
  })

  describe('the reset', () => {
    it.each(['code', 'token'] as const)(
      'with the %s sets the password, and makes both the code and the token invalid',
      async kind => {
        const { user, code, token } = await forgetful()
        const by = {
          code: { email: ` ${user.email.toUpperCase()}`, code: ` ${code} ` },
          token: { token: `\t${token} ` },
        }
        expectAnswer(await reset(by[kind]), 200, done)
        expect([await statusOf(user, newPassword), await statusOf(user, user.password)]).toEqual([200, 401])
        for (const again of Object.values(by)) expectRefusal(await reset(again), ...invalid)
      },
    )

    it('ends all sessions and verifies the email; if the email was unverified, deletes the API token and the webhook', async () => {
      const { user, code } = await forgetful('pro')
      const key = `key of ${user.email}`
      await giveKey(at.gateway, user, key)
      const hook = { body: { url: 'https://nobody.invalid/hook' }, token: user.access }
      expect((await call(at.gateway.url, 'POST', '/api/v1/user/webhook', hook)).status).toBe(201)
      expectAnswer(await reset({ email: user.email, code }), 200, done)
      expect((await post('refresh', { refresh_token: user.refresh })).status).toBe(401)
      const withKey = await call(at.gateway.url, 'GET', '/any/1', { headers: { 'x-api-key': key } })
      expect(withKey.status).toBe(401)
      const [row] = await at.gateway.sql<{ verified: boolean; hooks: number }>(
        `select email_verified_at is not null as verified,
                (select count(*)::integer from webhooks where user_id = u.id) as hooks from users u where id = $1`,
        [user.id],
      )
      expect(row).toEqual({ verified: true, hooks: 0 })
    })

    it('prevents access tokens of earlier sessions from creating an API token or a webhook', async () => {
      const { user, code } = await forgetful('pro')
      const asked = (method: string, path: string, access: string) => {
        const body = { url: 'https://nobody.invalid/hook' }
        return call(at.gateway.url, method, `/api/v1/user/${path}`, { token: access, body })
      }
      expectAnswer(await reset({ email: user.email, code }), 200, done)
      for (const path of ['api-token', 'webhook']) {
        const refused = await asked('POST', path, user.access)
        expectRefusal(refused, 401, 'token_invalid', 'Token invalide ou expiré')
        expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
      }
      // Until the old access token expires, routes still accept it, and it can delete a webhook.
      expect((await call(at.gateway.url, 'GET', '/pro', { token: user.access })).status).toBe(200)
      expect((await asked('DELETE', 'webhook', user.access)).status).toBe(200)
      const { access } = await login(at.gateway.url, user.email, newPassword)
      expect((await asked('POST', 'api-token', access)).status).toBe(201)
    })

    it('keeps the API token and webhook of a user with a verified email', async () => {
      const { user, token } = await forgetful('pro')
      await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
      const key = `kept key of ${user.email}`
      await giveKey(at.gateway, user, key)
      expectAnswer(await reset({ token }), 200, done)
      const withKey = await call(at.gateway.url, 'GET', '/any/1', { headers: { 'x-api-key': key } })
      expect(withKey.status).toBe(200)
    })

    it.each([
      ['court', 'password_too_short', 'Mot de passe trop court (min 8 caractères)'],
      ['x'.repeat(1_025), 'password_too_long', 'Mot de passe trop long (max 1024 caractères)'],
    ])(
      'checks the length of the new password before the code, so a wrong length does not count as a failed attempt',
      async (password, code, error) => {
        const mailed = await forgetful()
        const { email } = mailed.user
        for (let i = 0; i < 6; i += 1)
          for (const by of [{ token: mailed.token }, { email, code: mailed.code }, { email, code: '1' }])
            expectRefusal(await reset({ ...by, new_password: password }), 400, code, error)
        expectAnswer(await reset({ email, code: mailed.code }), 200, done)
      },
    )

    it('with `common_passwords: refuse`, refuses common passwords, as register and the password change do', async () => {
      const { user, code, token } = await forgetful()
      const common = [400, 'password_too_common', 'Mot de passe trop courant'] as const
      const change = (new_password: string) =>
        call(at.gateway.url, 'POST', '/api/v1/auth/password', {
          token: user.access,
          body: { current_password: user.password, new_password },
        })
      for (const password of ['Password1', user.email.toUpperCase(), String(user.email.split('@')[0])]) {
        expectRefusal(await change(password), ...common)
        expectRefusal(await reset({ token, new_password: password }), ...common)
        expectRefusal(await reset({ email: user.email, code, new_password: password }), ...common)
      }
      for (const password of ['Password1', 'New.comer@example.com', 'new.comer'])
        expectRefusal(await post('register', { email: 'new.comer@example.com', password }), ...common)
      expectAnswer(await reset({ email: user.email, code }), 200, done)
    })

    it.each([
      ['no code', () => ({})],
      ['a code without the email', ({ code }) => ({ code })],
      ['a code with the email of another user', ({ code }) => ({ code, email: 'other@example.com' })],
      ['a code as a number', ({ code, user }) => ({ code: Number(code), email: user.email })],
      ['a wrong code', ({ code, user }) => ({ code: otherCode(code), email: user.email })],
      ['a wrong token and a right code', ({ code, user }) => ({ token: 'x', code, email: user.email })],
    ] satisfies [string, (mailed: Awaited<ReturnType<typeof forgetful>>) => object][])(
      'is refused with %s',
      async (_, body) => expectRefusal(await reset(body(await forgetful())), ...invalid),
    )

    it('takes the same time for a wrong code with a known email and with an unknown email', async () => {
      const { user, code } = await forgetful()
      const times: [number[], number[]] = [[], []]
      for (let i = 0; i < 11; i += 1) {
        for (const [index, email] of [user.email, 'nobody@example.com'].entries()) {
          await at.gateway.sql('update account_codes set tries = 0')
          const start = performance.now()
          await reset({ email, code: otherCode(code) })
          times[index]?.push(performance.now() - start)
        }
      }
      expectSimilarMedians(times)
    })

    it('invalidates the code after five wrong attempts, but not the token', async () => {
      const { user, code, token } = await forgetful()
      for (let i = 1; i <= 5; i += 1)
        expectRefusal(await reset({ email: user.email, code: otherCode(code, i) }), ...invalid)
      expectRefusal(await reset({ email: user.email, code }), ...invalid)
      expectAnswer(await reset({ token }), 200, done)
    })
  })
})

// These tests run without Redis. On a busy machine, a Redis command may take longer than its timeout of 150 ms. Then
// the gateway would count the following requests in its memory, from 0.
describe('a forgotten password under limits', () => {
  const at = journey(
    embeddedSetup,
    {
      rateLimits: 'rate_limits: { register: 0, login_failures: 3/5m, login_failures_per_address: 12/5m }',
      server: ", trusted_proxies: ['127.0.0.0/8']",
    },
    () => mailSection(', rate_limits: { per_email: 2/1h, per_address: 4/1h }'),
  )
  let clients = 0
  /** Returns headers with an unused client address. */
  const client = () => ({ 'x-forwarded-for': `192.0.2.${++clients}` })
  const post = (path: string, body: unknown, headers: Record<string, string>) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, headers })

  it('a request beyond the email limit gets the same response, but mails nothing and keeps the earlier code valid', async () => {
    const { email } = await newUser(at.gateway)
    for (let i = 0; i < 2; i += 1) expectAnswer(await post('password/forgot', { email }, client()), 202, sent)
    const { token } = await codeTo(at.gateway, email)
    expectAnswer(await post('password/forgot', { email }, client()), 202, sent)
    expect(await kindsTo(at.gateway, email)).toEqual(['reset', 'reset'])
    expectAnswer(await post('password/reset', { token, new_password: newPassword }, client()), 200, done)
    // A notice of a completed change does not count against the limit.
    expect(await kindsTo(at.gateway, email)).toEqual(['reset', 'reset', 'password_changed'])
  })

  it('a code from an operator is sent despite the limit and replaces the earlier code; an inactive user gets none', async () => {
    const user = await newUser(at.gateway)
    const sendReset = () =>
      call(at.gateway.admin, 'POST', `/admin/v1/users/${user.id}/send-reset`, {
        token: at.gateway.adminToken,
      })
    for (let i = 0; i < 2; i += 1) await post('password/forgot', { email: user.email }, client())
    const before = await codeTo(at.gateway, user.email)
    expect((await sendReset()).status).toBe(202)
    expect(await kindsTo(at.gateway, user.email)).toEqual(['reset', 'reset', 'reset'])
    const { token } = await codeTo(at.gateway, user.email)
    const body = { token: before.token, new_password: newPassword }
    expectRefusal(await post('password/reset', body, client()), ...invalid)
    expectAnswer(await post('password/reset', { ...body, token }, client()), 200, done)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const refused = await sendReset()
    expectRefusal(refused, 409, 'user_inactive', 'Utilisateur inactif')
    expect((await kindsTo(at.gateway, user.email)).filter(kind => kind === 'reset')).toHaveLength(3)
  })

  it('a request counts against the email limit even if the account is created only later', async () => {
    const email = 'not.yet@example.com'
    for (let i = 0; i < 2; i += 1) await post('password/forgot', { email }, client())
    const body = { email, password: 'un mot de passe' }
    expect((await post('register', body, client())).status).toBe(201)
    expectAnswer(await post('password/forgot', { email }, client()), 202, sent)
    expect(await kindsTo(at.gateway, email)).toEqual([])
  })

  it('a request beyond the limit of its client address mails nothing and does not count against the email limit', async () => {
    const from = client()
    const emails = [await newUser(at.gateway), await newUser(at.gateway), await newUser(at.gateway)].map(
      ({ email }) => email,
    )
    for (const email of [emails[0], emails[1], 'nobody1@example.com', 'nobody2@example.com'])
      await post('password/forgot', { email }, from)
    for (let i = 0; i < 3; i += 1)
      expectAnswer(await post('password/forgot', { email: emails[2] }, from), 202, sent)
    expect(await kindsTo(at.gateway, String(emails[2]))).toEqual([])
    await post('password/forgot', { email: emails[2] }, client())
    expect(await kindsTo(at.gateway, String(emails[2]))).toEqual(['reset'])
  })

  it('wrong codes count as failed logins per email and per client address; wrong tokens do not count', async () => {
    const { email, password } = await newUser(at.gateway)
    await post('password/forgot', { email }, client())
    const { code, token } = await codeTo(at.gateway, email)
    const from = client()
    const body = { email, code: otherCode(code), new_password: newPassword }
    await post('login', { email, password: 'wrong password' }, from)
    for (let i = 0; i < 2; i += 1) expectRefusal(await post('password/reset', body, from), ...invalid)
    expectRefusal(
      await post('password/reset', { ...body, code }, from),
      429,
      'rate_limited',
      'Trop de requêtes',
    )
    expect((await post('login', { email, password }, from)).status).toBe(429)
    for (let i = 0; i < 20; i += 1)
      expectRefusal(await post('password/reset', { ...body, token: 'x' }, from), ...invalid)
    for (let i = 0; i < 9; i += 1)
      await post('password/reset', { ...body, email: `nobody${i}@example.com` }, from)
    const late = await post('password/reset', { ...body, email: 'somebody@example.com' }, from)
    expectRefusal(late, 429, 'rate_limited', 'Trop de requêtes')
    expectAnswer(await post('password/reset', { token, new_password: newPassword }, from), 200, done)
  })
})
