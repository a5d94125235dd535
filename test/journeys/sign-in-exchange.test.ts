// A page exchanges the code of a sign-in for tokens. Each code gives only one session, and only to the page that
// started the sign-in.
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Answer, call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups, eitherSetup } from '../support/setups.ts'
import {
  codeFor,
  exchange,
  expectPair,
  identitiesOf,
  newPerson,
  refusals,
  sendIdToken,
  signInStage,
  userOf,
  usersWith,
} from '../support/sign-in.ts'

const wrong = 'a wrong password'
const minuteMs = 60_000

describeOverSetups('the code of a sign-in', setup => {
  const at = signInStage(setup)
  type Refusal = readonly [number, string, string]
  const refused = async (answer: Promise<Answer>, refusal: Refusal) => expectRefusal(await answer, ...refusal)
  const verify = ({ id }: TestUser) =>
    at.gateway.sql('update users set email_verified_at = now() where id = $1', [id])
  const stored = async ({ code }: { code: string }) => {
    const [row] = await at.gateway.sql<{ code_challenge: string; id_token_hash: string }>(
      'select code_challenge, id_token_hash from sign_in_codes where code_hash = $1',
      [createHash('sha256').update(code).digest('hex')],
    )
    return row ?? expect.unreachable()
  }
  /** Registers an account with an unverified email. @returns the user, and the code of a sign-in with this email */
  async function unverified() {
    const user = await newUser(at.gateway)
    const person = newPerson({ email: user.email })
    return { user, person, code: await codeFor(at, person) }
  }

  describe('at the exchange endpoint', () => {
    it('is valid for 60 s', async () => {
      const [early, late] = [await codeFor(at, newPerson()), await codeFor(at, newPerson())]
      at.move(55_000)
      expectPair(await exchange(at.gateway, early), 201)
      at.move(5_000)
      await refused(exchange(at.gateway, late), refusals.codeInvalid)
    })

    it('is valid at every replica, but only once', async () => {
      const code = await codeFor(at, newPerson())
      expectPair(await exchange(at.other, code), 201)
      for (const gateway of [at.gateway, at.other])
        await refused(exchange(gateway, code), refusals.codeInvalid)
    })

    it('is accepted in exactly one of 20 concurrent requests', async () => {
      const person = newPerson()
      const code = await codeFor(at, person)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => exchange(i % 2 === 0 ? at.gateway : at.other, code)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(400)])
      const [user] = await usersWith(at.gateway, person.email)
      const sessions = await at.gateway.sql('select from refresh_tokens where user_id = $1', [user?.id])
      expect(sessions).toHaveLength(1)
    })

    it('is accepted in exactly one of 20 concurrent requests, even if the person is already known', async () => {
      const person = newPerson()
      expectPair(await exchange(at.gateway, await codeFor(at, person)), 201)
      const code = await codeFor(at, person)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => exchange(i % 2 === 0 ? at.gateway : at.other, code)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)])
    })

    it('is valid only with its verifier; a wrong verifier makes it invalid', async () => {
      for (const code_verifier of [undefined, '', 'x', 'v'.repeat(43), null, 7]) {
        const code = await codeFor(at, newPerson())
        await refused(exchange(at.gateway, { ...code, code_verifier }), refusals.codeInvalid)
        await refused(exchange(at.gateway, code), refusals.codeInvalid)
      }
    })

    it('is invalid if the challenge is sent instead of the verifier', async () => {
      const code = await codeFor(at, newPerson())
      const { code_challenge } = await stored(code)
      expect(code_challenge).toMatch(/^[\w-]{43}$/)
      const body = { ...code, code_verifier: code_challenge }
      await refused(exchange(at.gateway, body), refusals.codeInvalid)
    })

    it('is invalid if it is unknown, missing or not a string', async () => {
      const { code_verifier } = await codeFor(at, newPerson())
      for (const code of [undefined, null, '', 'x', 7, 'c'.repeat(43), 'x'.repeat(50_000)])
        await refused(exchange(at.gateway, { code, code_verifier }), refusals.codeInvalid)
      await refused(exchange(at.gateway, {}), refusals.codeInvalid)
    })

    it('cannot be replaced by its hash from the database', async () => {
      const { code_verifier } = await codeFor(at, newPerson())
      const rows = await at.gateway.sql<{ code_hash: string }>('select code_hash from sign_in_codes')
      for (const { code_hash: code } of rows)
        await refused(exchange(at.gateway, { code, code_verifier }), refusals.codeInvalid)
    })
  })

  describe('after account_exists', () => {
    it('is valid for 10 minutes after the callback, even if it is sent several times', async () => {
      const { user, code } = await unverified()
      at.move(50_000)
      await refused(exchange(at.gateway, code), refusals.exists)
      at.move(4 * minuteMs)
      await refused(exchange(at.other, code), refusals.exists)
      at.move(4 * minuteMs)
      await refused(exchange(at.gateway, code), refusals.exists)
      const late = await unverified()
      await refused(exchange(at.gateway, late.code), refusals.exists)
      expectPair(await exchange(at.gateway, { ...code, password: user.password }), 200)
      at.move(10 * minuteMs)
      const expired = { ...late.code, password: late.user.password }
      await refused(exchange(at.gateway, expired), refusals.codeInvalid)
    })

    it('still needs its verifier', async () => {
      const { user, code } = await unverified()
      await refused(exchange(at.gateway, code), refusals.exists)
      const stolen = { ...code, code_verifier: 'v'.repeat(43), password: user.password }
      await refused(exchange(at.gateway, stolen), refusals.codeInvalid)
      await refused(exchange(at.gateway, { ...code, password: user.password }), refusals.codeInvalid)
    })

    it('links the account with the correct password, even after four wrong passwords', async () => {
      const { user, person, code } = await unverified()
      await giveKey(at.gateway, user, `peage_${'k'.repeat(30)}${user.id}`)
      await refused(exchange(at.gateway, code), refusals.exists)
      for (let i = 0; i < 4; i += 1)
        await refused(exchange(at.gateway, { ...code, password: wrong }), refusals.credentials)
      const linked = await exchange(at.gateway, { ...code, password: user.password })
      expectPair(linked, 200)
      expect(await userOf(at, linked)).toBe(user.id)
      expect(await identitiesOf(at.gateway, user.id)).toEqual([{ issuer: at.alpha.url, sub: person.sub }])
      const [stored] = await usersWith(at.gateway, user.email)
      expect([stored?.isVerified, stored?.password_hash]).toEqual([
        true,
        expect.stringMatching(/^\$argon2id/),
      ])
      // The account keeps its password, its sessions and its API keys.
      expect(await at.gateway.sql('select from api_tokens where user_id = $1', [user.id])).toHaveLength(1)
      const body = { refresh_token: user.refresh }
      expect((await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body })).status).toBe(200)
    })

    it('is invalid after five wrong passwords, even with the correct password', async () => {
      const { user, code } = await unverified()
      await refused(exchange(at.gateway, code), refusals.exists)
      for (let i = 0; i < 5; i += 1)
        await refused(exchange(at.other, { ...code, password: wrong }), refusals.credentials)
      for (const proof of [{ password: user.password }, { reset: true }, {}])
        await refused(exchange(at.gateway, { ...code, ...proof }), refusals.codeInvalid)
      expect(await identitiesOf(at.gateway, user.id)).toEqual([])
    })

    it('allows only five of 20 concurrent attempts with wrong passwords', async () => {
      const { code } = await unverified()
      await refused(exchange(at.gateway, code), refusals.exists)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          exchange(i % 2 === 0 ? at.gateway : at.other, { ...code, password: `${wrong} ${i}` }),
        ),
      )
      const wrongs = answers.filter(({ status }) => status === 401)
      expect([wrongs.length, new Set(answers.map(({ status }) => status))]).toEqual([5, new Set([400, 401])])
    })

    it('resets the account, which removes its password, sessions, API keys and other identities', async () => {
      const { user, person, code } = await unverified()
      const headers = { 'x-api-key': `peage_${'r'.repeat(30)}${user.id}` }
      await giveKey(at.gateway, user, headers['x-api-key'])
      const withKey = async () => (await call(at.gateway.url, 'GET', '/me', { headers })).status
      expect(await withKey()).toBe(200)
      const foreign =
        "insert into identities (issuer, sub, user_id) values ('https://evil.example.com', $2, $1)"
      await at.gateway.sql(foreign, [user.id, `m${user.id}`])
      await refused(exchange(at.gateway, code), refusals.exists)
      const reset = await exchange(at.gateway, { ...code, reset: true })
      expectPair(reset, 200)
      expect(await userOf(at, reset)).toBe(user.id)
      expect(await identitiesOf(at.gateway, user.id)).toEqual([{ issuer: at.alpha.url, sub: person.sub }])
      expect(await usersWith(at.gateway, user.email)).toEqual([
        { id: user.id, password_hash: '!', isVerified: true },
      ])
      expect(await withKey()).toBe(401)
      const body = { refresh_token: user.refresh }
      expect((await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body })).status).toBe(401)
      const { email, password } = user
      const login = await call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password } })
      expectRefusal(login, ...refusals.credentials)
    })

    it('is used up by a reset that fails because the account has another identity of the same issuer', async () => {
      const { user, code } = await unverified()
      const identity = 'insert into identities (issuer, sub, user_id) values ($2, $3, $1)'
      await at.gateway.sql(identity, [user.id, at.alpha.url, `other ${user.id}`])
      await refused(exchange(at.gateway, code), refusals.exists)
      await refused(exchange(at.gateway, { ...code, password: user.password }), refusals.exists)
      await refused(exchange(at.gateway, { ...code, reset: true }), refusals.exists)
      await refused(exchange(at.gateway, code), refusals.codeInvalid)
    })

    it('uses the password and ignores the reset if a request contains both', async () => {
      const { user, code } = await unverified()
      await refused(exchange(at.gateway, { ...code, password: wrong, reset: true }), refusals.credentials)
      expectPair(await exchange(at.gateway, { ...code, password: user.password, reset: true }), 200)
      expect((await usersWith(at.gateway, user.email))[0]?.password_hash).toMatch(/^\$argon2id/)
    })
  })

  it.each<[string, object, Refusal]>([
    ['no verified email', { email_verified: false }, refusals.unverified],
    ['an email of two mailboxes', { email: 'a@example.com,b@example.com' }, refusals.unverified],
    ['an email with a name', { email: 'Ada <ada@example.com>' }, refusals.unverified],
  ])('is not used up if the exchange is refused because of %s', async (_, claims, refusal) => {
    const code = await codeFor(at, newPerson(claims as Record<string, unknown>))
    for (let i = 0; i < 3; i += 1) await refused(exchange(at.gateway, code), refusal)
  })

  it('is not used up if the exchange is refused because the user is inactive', async () => {
    const user = await newUser(at.gateway)
    await verify(user)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const code = await codeFor(at, newPerson({ email: user.email }))
    await refused(exchange(at.gateway, code), refusals.credentials)
    await at.gateway.sql('update users set is_active = 1 where id = $1', [user.id])
    expectPair(await exchange(at.gateway, code), 200)
  })

  it('gives no session if its ID token has already given a session', async () => {
    // This happens only if a dishonest provider issues the same ID token twice, or if an ID token leaks.
    const person = newPerson()
    const code = await codeFor(at, person)
    const { id_token_hash } = await stored(code)
    const spend = "insert into used_id_tokens (token_hash, expires_at) values ($1, now() + interval '1 hour')"
    await at.gateway.sql(spend, [id_token_hash])
    await refused(exchange(at.gateway, code), refusals.codeInvalid)
    expect(await usersWith(at.gateway, person.email)).toEqual([])
  })

  it('signs in to the account that a sign-in in an app has created, without a second identity', async () => {
    const person = newPerson()
    expectPair(await sendIdToken(at.gateway, { id_token: await at.alpha.idToken(person) }), 201)
    const answer = await exchange(at.other, await codeFor(at, person))
    expectPair(answer, 200)
    const user = await userOf(at, answer)
    expect(await identitiesOf(at.gateway, user)).toHaveLength(1)
  })
})

describe('a limit of failed logins', () => {
  const at = signInStage(eitherSetup(), { rateLimits: 'rate_limits: { login_failures: 3/5m }' })

  it('counts wrong passwords in logins and in exchanges of codes together, per email of the account', async () => {
    const user = await newUser(at.gateway)
    const code = await codeFor(at, newPerson({ email: user.email }))
    const send = (password: string) => exchange(at.gateway, { ...code, password })
    const login = (password: string) =>
      call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: { email: user.email, password } })
    expectRefusal(await send(wrong), ...refusals.credentials)
    expectRefusal(await login(wrong), ...refusals.credentials)
    expectRefusal(await send(wrong), ...refusals.credentials)
    for (const limited of [await login(user.password), await send(user.password)])
      expect([limited.status, limited.headers.get('x-peage-error')]).toEqual([429, 'rate_limited'])
    // A password that is refused with 429 does not count as an attempt. So the code is still valid.
    expectPair(await exchange(at.gateway, { ...code, reset: true }), 200)
  })
})
