// Users change their own password.
import { expect, it } from 'vitest'
import { call, login, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const next = 'un autre mot de passe'
const wrong = [401, 'credentials_invalid', 'Identifiants invalides'] as const

describeOverSetups('a password change', setup => {
  const at = journey(setup, {
    auth: ', refresh_reuse: revoke_all',
    rateLimits: 'rate_limits: { login_failures: 4/5m }',
  })

  const change = (token: string, body: unknown, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'POST', '/api/v1/auth/password', { token, body, headers })
  const changeOf = (user: TestUser, to = next) =>
    change(user.access, { current_password: user.password, new_password: to })
  const refresh = (token: string) =>
    call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: token } })
  const loginStatus = async (email: string, password: string) =>
    (await call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password } })).status
  const sessionsOf = async (token: string) => {
    const { body } = await call(at.gateway.url, 'GET', '/api/v1/auth/sessions', { token })
    return body.sessions as { current: boolean; user_agent: string }[]
  }

  it('returns the tokens of a new session, as login does, and ends all previous sessions', async () => {
    const user = await newUser(at.gateway)
    const other = await login(at.gateway.url, user.email, user.password)
    const answer = await change(
      user.access,
      { current_password: user.password, new_password: next },
      { 'user-agent': 'Tests/1' },
    )
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      token_type: 'Bearer',
      plan: 'free',
    })
    for (const refreshToken of [user.refresh, other.refresh])
      expect((await refresh(refreshToken)).headers.get('x-peage-error')).toBe('refresh_token_inactive')
    const access = String(answer.body.access_token)
    expect(await sessionsOf(access)).toMatchObject([{ current: true, user_agent: 'Tests/1' }])
    expect((await refresh(String(answer.body.refresh_token))).status).toBe(200)
    expect(await loginStatus(user.email, user.password)).toBe(401)
    expect(await loginStatus(user.email, next)).toBe(200)
  })

  it('with a wrong current password, returns 401 without WWW-Authenticate and counts as a failed login', async () => {
    const user = await newUser(at.gateway)
    for (const current of ['wrong', '', undefined]) {
      const answer = await change(user.access, { current_password: current, new_password: next })
      expectRefusal(answer, ...wrong)
      expect(answer.headers.get('www-authenticate')).toBeNull()
    }
    expect(await loginStatus(user.email, 'wrong')).toBe(401)
    expect((await changeOf(user)).headers.get('x-peage-error')).toBe('rate_limited')
  })

  it('checks the length of the new password, then the current password, then whether both are equal', async () => {
    const user = await newUser(at.gateway)
    const attempt = (current: string, to: string) =>
      change(user.access, { current_password: current, new_password: to })
    const short = [400, 'password_too_short', 'Mot de passe trop court (min 8 caractères)'] as const
    const long = [400, 'password_too_long', 'Mot de passe trop long (max 1024 caractères)'] as const
    for (let i = 0; i < 5; i += 1) {
      expectRefusal(await attempt('wrong', '1234567'), ...short)
      expectRefusal(await attempt(user.password, 'x'.repeat(1025)), ...long)
      expectRefusal(
        await changeOf(user, user.password),
        400,
        'password_unchanged',
        'Le nouveau mot de passe doit être différent',
      )
    }
    expectRefusal(await attempt('same and wrong', 'same and wrong'), ...wrong)
  })

  it('succeeds only once if several requests use the same current password', async () => {
    const user = await newUser(at.gateway)
    const answers = await Promise.all(Array.from({ length: 4 }, (_, i) => changeOf(user, `${next} ${i}`)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    const codes = answers.map(({ headers }) => headers.get('x-peage-error')).filter(code => code !== null)
    // The request that succeeds ends all sessions. Therefore, later requests may get `token_invalid`.
    for (const code of codes) expect(['credentials_invalid', 'token_invalid']).toContain(code)
    expect(await sessionsOf(String(won[0]?.body.access_token))).toHaveLength(1)
  })

  it('keeps the new session even if an older refresh token is used, whether or not that token was exchanged', async () => {
    const user = await newUser(at.gateway)
    const second = String((await refresh(user.refresh)).body.refresh_token)
    const changed = await changeOf(user)
    at.gateway.clock.at += 60_000
    expect((await refresh(user.refresh)).status).toBe(401)
    expect((await refresh(second)).status).toBe(401)
    expect((await refresh(String(changed.body.refresh_token))).status).toBe(200)
  })
})
