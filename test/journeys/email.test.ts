// Users verify and change their email by code or token. A change ends some or all sessions.
import { describe, expect, it } from 'vitest'
import { call, giveKey, login, newUser, type TestUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { codeTo, kindsTo, mailSection, otherCode } from '../support/mailed.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const mailSent = { message: 'E-mail envoyé' }
const invalid = [400, 'code_invalid', 'Code invalide ou expiré'] as const
let addresses = 0
/** Returns an address that no account uses. */
const freeEmail = () => `free${++addresses}@example.org`

describeOverSetups('emails', setup => {
  const at = journey(setup, {}, upstream => routes(upstream) + mailSection())
  const post = (path: string, body?: unknown, token?: string, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, {
      body,
      headers,
      ...(token === undefined ? {} : { token }),
    })
  const refreshes = async ({ refresh }: { refresh: string }) =>
    (await post('refresh', { refresh_token: refresh })).status === 200
  const isVerified = async ({ id }: { id: number }) => {
    const sql = 'select email_verified_at is not null as yes from users where id = $1'
    return (await at.gateway.sql<{ yes: boolean }>(sql, [id]))[0]?.yes
  }
  const emailOf = async ({ id }: { id: number }) =>
    (await at.gateway.sql<{ email: string }>('select email from users where id = $1', [id]))[0]?.email
  const deactivate = ({ id }: { id: number }) =>
    at.gateway.sql('update users set is_active = 0 where id = $1', [id])

  describe('verification', () => {
    const ask = (user: TestUser) => post('email/verify/request', undefined, user.access)

    /** Creates a user who has received a code by mail. */
    async function asking() {
      const user = await newUser(at.gateway)
      expectAnswer(await ask(user), 202, mailSent)
      return { user, ...(await codeTo(at.gateway, user.email)) }
    }

    it.each(['code', 'token'] as const)('with a %s verifies the email and keeps the sessions', async kind => {
      const { user, code, token } = await asking()
      const by = { code: { email: ` ${user.email.toUpperCase()} `, code: ` ${code} ` }, token: { token } }
      expectAnswer(await post('email/verify', by[kind]), 200, { message: 'E-mail vérifié' })
      expect(await isVerified(user)).toBe(true)
      for (const again of Object.values(by)) expectRefusal(await post('email/verify', again), ...invalid)
      expectAnswer(await ask(user), 200, { message: 'E-mail déjà vérifié' })
      expect(await kindsTo(at.gateway, user.email)).toEqual(['verify'])
      expect(await refreshes(user)).toBe(true)
    })

    it('has its own codes, which cannot set a password or change the email; reset codes cannot verify an email', async () => {
      const { user, code, token } = await asking()
      const newPassword = { new_password: 'un mot de passe' }
      expectRefusal(await post('password/reset', { token, ...newPassword }), ...invalid)
      expectRefusal(await post('password/reset', { email: user.email, code, ...newPassword }), ...invalid)
      expectRefusal(await post('email/confirm', { token }), ...invalid)
      await post('password/forgot', { email: user.email })
      const reset = await codeTo(at.gateway, user.email)
      expectRefusal(await post('email/verify', { token: reset.token }), ...invalid)
      expectRefusal(await post('email/verify', { email: user.email, code: reset.code }), ...invalid)
      expectAnswer(await post('email/verify', { token }), 200, { message: 'E-mail vérifié' })
    })

    it('does not start at a registration by default, so no code is mailed', async () => {
      const email = freeEmail()
      expect((await post('register', { email, password: 'un mot de passe' })).status).toBe(201)
      expect(await kindsTo(at.gateway, email)).toEqual([])
    })
  })

  it('a verification code is valid for a day by default, other codes for 30 minutes', async () => {
    const user = await newUser(at.gateway)
    const minutesOf = async (address: string) => {
      const { row } = await codeTo(at.gateway, address)
      return (row.expires_at.getTime() - at.gateway.clock.at) / 60_000
    }
    await post('email/verify/request', undefined, user.access)
    expect(await minutesOf(user.email)).toBe(24 * 60)
    await post('password/forgot', { email: user.email })
    expect(await minutesOf(user.email)).toBe(30)
    const email = freeEmail()
    await post('email', { email, current_password: user.password }, user.access)
    expect(await minutesOf(email)).toBe(30)
  })

  it('if an operator changes or deletes an account, the user gets a notice', async () => {
    const user = await newUser(at.gateway)
    const moved = freeEmail()
    const operate = async (method: string, path: string, body?: object) => {
      const to = `/admin/v1/users/${user.id}${path}`
      const { status } = await call(at.gateway.admin, method, to, { token: at.gateway.adminToken, body })
      expect(status).toBeLessThan(300)
    }
    await operate('POST', '/password', { password: 'un autre mot de passe' })
    await operate('PATCH', '', { email: moved })
    await operate('DELETE', '')
    expect(await kindsTo(at.gateway, user.email)).toEqual(['password_changed', 'email_changed'])
    expect(await kindsTo(at.gateway, moved)).toEqual(['account_deleted'])
  })

  describe('a change', () => {
    const ask = (user: TestUser, email: unknown, password: unknown = user.password) =>
      post('email', { email, current_password: password }, user.access)

    /** Creates a user who has received a code at a new address. */
    async function changing(email = freeEmail()) {
      const user = await newUser(at.gateway)
      expectAnswer(await ask(user, ` ${email.toUpperCase()} `), 202, mailSent)
      return { user, email, ...(await codeTo(at.gateway, email)) }
    }
    const changed = (email: string) => ({ message: 'E-mail modifié', email })

    it('sends a code to the new address and a notice to the old address, but does not yet change the email', async () => {
      const { user, email } = await changing()
      expect(await kindsTo(at.gateway, email)).toEqual(['email'])
      expect(await kindsTo(at.gateway, user.email)).toEqual(['email_change_requested'])
      expect(await emailOf(user)).toBe(user.email)
    })

    it('is confirmed by code in a session; this session stays open, and all other sessions end', async () => {
      const { user, email, code } = await changing()
      const other = await login(at.gateway.url, user.email, user.password)
      expectAnswer(await post('email/confirm', { code: ` ${code} ` }, user.access), 200, changed(email))
      expect([await emailOf(user), await isVerified(user)]).toEqual([email, true])
      expect([await refreshes(user), await refreshes(other)]).toEqual([true, false])
      expect((await login(at.gateway.url, email, user.password)).access).toMatch(/\./)
    })

    it('is confirmed by token, with or without valid credentials, and ends all sessions of the user', async () => {
      const [{ user, email, token }, other] = [await changing(), await newUser(at.gateway)]
      for (const credential of [user.access, other.access, 'no token'])
        expectRefusal(await post('email/confirm', { token: 'x' }, credential), ...invalid)
      expectAnswer(await post('email/confirm', { token: ` ${token} ` }, 'no token'), 200, changed(email))
      expect([await refreshes(user), await refreshes(other)]).toEqual([false, true])
      expectRefusal(await post('email/confirm', { token }), ...invalid)
    })

    it('is confirmed by code only in an open session of the same user, never with an API key', async () => {
      const [{ user, code }, other] = [await changing(), await newUser(at.gateway)]
      const key = `key of ${user.email}`
      await giveKey(at.gateway, user, key)
      expectRefusal(await post('email/confirm', { code }, other.access), ...invalid)
      const refused = [401, 'token_invalid', 'Token invalide ou expiré'] as const
      expectRefusal(await post('email/confirm', { code }), ...refused)
      const bearer = [403, 'bearer_required', "Jeton d'accès requis"] as const
      expectRefusal(await post('email/confirm', { code }, undefined, { 'x-api-key': key }), ...bearer)
      await post('logout', { refresh_token: user.refresh })
      expectRefusal(await post('email/confirm', { code }, user.access), ...refused)
      expect(await emailOf(user)).toBe(user.email)
    })

    it('if the new address is the current one, mails a code and a notice; the code verifies the address, and no session ends', async () => {
      const user = await newUser(at.gateway)
      expectAnswer(await ask(user, user.email), 202, mailSent)
      expect(await kindsTo(at.gateway, user.email)).toEqual(['email', 'email_change_requested'])
      const { token } = await codeTo(at.gateway, user.email)
      expectAnswer(await post('email/confirm', { token }), 200, changed(user.email))
      expect([await isVerified(user), await refreshes(user)]).toEqual([true, true])
    })

    it.each(['active', 'inactive'])(
      'gets the same response for the address of another account (%s) as for a free address',
      async state => {
        const [{ user, code, token, email }, owner] = [await changing(), await newUser(at.gateway)]
        if (state === 'inactive') await deactivate(owner)
        const before = at.gateway.log.length
        expectAnswer(await ask(user, owner.email), 202, mailSent)
        expectAnswer(await ask(user, freeEmail()), 202, mailSent)
        const lines = at.gateway.log
          .slice(before)
          .map(line => JSON.parse(line) as Record<string, unknown>)
          .filter(({ msg }) => msg === 'request')
          .map(line => ['route', 'decision', 'status', 'user_id', 'bytes_sent'].map(field => line[field]))
        expect(lines).toHaveLength(2)
        expect(lines[0]).toEqual(lines[1])
        expect(await kindsTo(at.gateway, owner.email)).toEqual(state === 'active' ? ['email_taken'] : [])
        expect(await kindsTo(at.gateway, user.email)).toEqual(Array(3).fill('email_change_requested'))
        expect(await kindsTo(at.gateway, email)).toEqual(['email'])
        expectRefusal(await post('email/confirm', { token }), ...invalid)
        expectRefusal(await post('email/confirm', { code }, user.access), ...invalid)
      },
    )

    it('if another account takes the address before the confirmation, returns 409 and keeps the code valid', async () => {
      const { user, email, token } = await changing()
      const owner = await newUser(at.gateway)
      await at.gateway.sql('update users set email = $2, is_active = 0 where id = $1', [owner.id, email])
      expectRefusal(await post('email/confirm', { token }), 409, 'email_taken', 'Email déjà enregistré')
      expect([await isVerified(user), await refreshes(user)]).toEqual([false, true])
      await at.gateway.sql('update users set email = $2 where id = $1', [owner.id, owner.email])
      expectAnswer(await post('email/confirm', { token }), 200, changed(email))
    })

    it('checks the format of the address, then the password; no refusal reveals whether an address is taken', async () => {
      const [user, owner] = [await newUser(at.gateway), await newUser(at.gateway)]
      for (const email of [undefined, '', 'no address', 'two words@example.com', 'é@example.com', 'a@b, c@d'])
        expectRefusal(await ask(user, email, 'wrong password'), 400, 'email_invalid', 'Email invalide')
      for (const email of [owner.email, freeEmail()])
        for (const password of ['wrong password', '', undefined]) {
          const body = { email, current_password: password }
          const answer = await post('email', body, user.access)
          expectRefusal(answer, 401, 'credentials_invalid', 'Identifiants invalides')
          expect(answer.headers.get('www-authenticate')).toBeNull()
        }
      expect(
        await at.gateway.sql('select from mails where user_id = any($1)', [[user.id, owner.id]]),
      ).toEqual([])
    })
  })
})

describeOverSetups('emails under limits', setup => {
  const at = journey(
    setup,
    {
      rateLimits: 'rate_limits: { register: 0, login_failures: 3/5m, login_failures_per_address: 0 }',
      server: ", trusted_proxies: ['127.0.0.0/8']",
    },
    () => mailSection(', rate_limits: { per_email: 2/1h, per_address: 20/1h }, verify_on_register: true'),
  )
  let clients = 0
  const client = () => ({ 'x-forwarded-for': `192.0.2.${++clients}` })
  const post = (path: string, body: unknown, token: string | undefined, headers: Record<string, string>) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, {
      body,
      headers,
      ...(token === undefined ? {} : { token }),
    })
  const register = async (email: string) => {
    const answer = await post('register', { email, password: 'un mot de passe' }, undefined, client())
    expect([answer.status, answer.body.message]).toEqual([201, 'Compte créé'])
  }

  it('with verify_on_register, a registration mails a verification code, which counts towards the mail limits', async () => {
    const email = freeEmail()
    await register(email)
    const { token } = await codeTo(at.gateway, email)
    expect((await post('email/verify', { token }, undefined, client())).status).toBe(200)
    for (let i = 0; i < 2; i += 1) await post('password/forgot', { email }, undefined, client())
    expect(await kindsTo(at.gateway, email)).toEqual(['verify', 'reset'])
  })

  it('a registration returns 201 even if its mail cannot be stored or its address cannot receive mail', async () => {
    await register(`two words ${freeEmail()}`)
    await at.gateway.sql('alter table account_codes rename to account_codes_away')
    try {
      await register(freeEmail())
    } finally {
      await at.gateway.sql('alter table account_codes_away rename to account_codes')
    }
    expect(at.gateway.log.join('')).toContain('was not stored')
  })

  it('if the old or the new address has reached its mail limit, a change sends no mail and keeps earlier codes valid', async () => {
    const user = await newUser(at.gateway)
    const [first, second] = [freeEmail(), freeEmail()]
    const ask = (email: string) =>
      post('email', { email, current_password: user.password }, user.access, client())
    expectAnswer(await ask(first), 202, mailSent)
    const { token } = await codeTo(at.gateway, first)
    await post('password/forgot', { email: user.email }, undefined, client())
    expectAnswer(await ask(second), 202, mailSent)
    expect(await kindsTo(at.gateway, second)).toEqual([])
    expect(await kindsTo(at.gateway, user.email)).toEqual(['email_change_requested', 'reset'])
    expect((await post('email/confirm', { token }, undefined, client())).status).toBe(200)
  })

  it('a verification request beyond the limit gets the usual response, sends no mail, and keeps earlier codes valid', async () => {
    const user = await newUser(at.gateway)
    for (let i = 0; i < 2; i += 1)
      expectAnswer(await post('email/verify/request', {}, user.access, client()), 202, mailSent)
    const { token } = await codeTo(at.gateway, user.email)
    expectAnswer(await post('email/verify/request', {}, user.access, client()), 202, mailSent)
    expect(await kindsTo(at.gateway, user.email)).toEqual(['verify', 'verify'])
    expect((await post('email/verify', { token }, undefined, client())).status).toBe(200)
  })

  it('wrong codes and wrong passwords count as failed logins of the account', async () => {
    const tooMany = [429, 'rate_limited', 'Trop de requêtes'] as const
    const user = await newUser(at.gateway)
    await post('email/verify/request', {}, user.access, client())
    const { code } = await codeTo(at.gateway, user.email)
    const [from, elsewhere] = [client(), client()]
    const wrong = { email: user.email, code: otherCode(code) }
    expectRefusal(await post('email/verify', wrong, undefined, from), ...invalid)
    expectRefusal(await post('email/confirm', wrong, user.access, from), ...invalid)
    const change = { email: freeEmail(), current_password: 'wrong password' }
    expect((await post('email', change, user.access, from)).status).toBe(401)
    expectRefusal(await post('email', change, user.access, from), ...tooMany)
    expectRefusal(await post('email/verify', { ...wrong, code }, undefined, from), ...tooMany)
    expectRefusal(await post('email/confirm', { code }, user.access, from), ...tooMany)
    expect((await post('email/verify', { ...wrong, code }, undefined, elsewhere)).status).toBe(200)
  })
})

describeOverSetups('emails without notices', setup => {
  const keySecret = 'a-secret-of-our-own-0123'
  const at = journey(setup, { auth: `, key_secret: ${keySecret}` }, () => mailSection(', notices: false'))

  it('a change sends mail only to the new address, and sends no mail if another account has this address', async () => {
    const [user, owner] = [await newUser(at.gateway), await newUser(at.gateway)]
    const email = freeEmail()
    for (const wanted of [owner.email, email]) {
      const body = { email: wanted, current_password: user.password }
      const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/email', { body, token: user.access })
      expectAnswer(answer, 202, mailSent)
    }
    expect(await at.gateway.sql('select kind, address from mails')).toEqual([
      { kind: 'email', address: email },
    ])
  })

  it('with auth.key_secret, codes are derived from this secret, and the database contains no key for codes', async () => {
    const { email, access: token } = await newUser(at.gateway)
    await call(at.gateway.url, 'POST', '/api/v1/auth/email/verify/request', { token })
    expect(await at.gateway.sql('select from account_code_key')).toEqual([])
    const body = { token: (await codeTo(at.gateway, email, keySecret)).token }
    expect((await call(at.gateway.url, 'POST', '/api/v1/auth/email/verify', { body })).status).toBe(200)
  })
})
