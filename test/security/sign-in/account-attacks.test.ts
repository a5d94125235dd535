// Attacks on accounts through a provider: an attacker registers an account before the owner does, uses a confusable
// email, or changes the subject (`sub`).
import { describe, expect, it } from 'vitest'
import { call, giveKey, login, newUser, type TestUser } from '../../support/client.ts'
import type { Claims } from '../../support/code-issuer.ts'
import { codeTo } from '../../support/mailed.ts'
import { expectRefusal } from '../../support/refusals.ts'
import { describeOverSetups } from '../../support/setups.ts'
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
} from '../../support/sign-in.ts'

describeOverSetups('in an attack on an account,', setup => {
  const at = signInStage(setup, { alpha: ', domains: [example.com, k.example]', replicas: 1 })

  const signIn = async (claims: Claims, more: object = {}, name: 'alpha' | 'beta' = 'alpha') =>
    sendIdToken(at.gateway, { id_token: await at[name].idToken(claims), ...more }, name)
  const verify = ({ id }: { id: number }) =>
    at.gateway.sql('update users set email_verified_at = now() where id = $1', [id])
  const refreshes = async ({ refresh }: TestUser) => {
    const body = { refresh_token: refresh }
    return (await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body })).status
  }
  /** Links an identity of an attacker to the account, as if the attacker had owned the account. */
  const linkAttacker = async (user: TestUser) => {
    const attacker = newPerson({ email: 'attacker@evil.example.com' })
    await at.gateway.sql('insert into identities (issuer, sub, user_id) values ($2, $3, $1)', [
      user.id,
      at.beta.url,
      attacker.sub,
    ])
    return attacker
  }

  describe('an account that an attacker registered before the owner', () => {
    it('is not given to the owner of the email in exchange for an ID token or a code', async () => {
      const attacker = await newUser(at.gateway)
      const owner = newPerson({ email: attacker.email })
      for (let i = 0; i < 2; i += 1) {
        expectRefusal(await signIn(owner), ...refusals.exists)
        expectRefusal(await exchange(at.gateway, await codeFor(at, owner)), ...refusals.exists)
      }
      expect(await identitiesOf(at.gateway, attacker.id)).toEqual([])
      expect(await usersWith(at.gateway, attacker.email)).toMatchObject([{ isVerified: false }])
    })

    it('has no password, session, key or identity of the attacker after the owner signs in with a reset', async () => {
      const attacker = await newUser(at.gateway)
      const headers = { 'x-api-key': `peage_${'a'.repeat(30)}${attacker.id}` }
      await giveKey(at.gateway, attacker, headers['x-api-key'])
      const identity = await linkAttacker(attacker)
      expect((await call(at.gateway.url, 'GET', '/me', { headers })).status).toBe(200)
      const owner = await signIn(newPerson({ email: attacker.email }), { reset: true })
      expectPair(owner, 200)
      expect(await userOf(at, owner)).toBe(attacker.id)
      expect((await login(at.gateway.url, attacker.email, attacker.password)).access).toBe('undefined')
      expect(await refreshes(attacker)).toBe(401)
      expect((await call(at.gateway.url, 'GET', '/me', { headers })).status).toBe(401)
      const again = await signIn(identity, {}, 'beta')
      expectPair(again, 201)
      expect(await userOf(at, again)).not.toBe(attacker.id)
    })

    it('has no identity of the attacker after the owner resets the password by mail', async () => {
      const attacker = await newUser(at.gateway)
      const identity = await linkAttacker(attacker)
      const auth = (path: string, body: object) =>
        call(at.gateway.url, 'POST', `/api/v1/auth/password/${path}`, { body })
      await auth('forgot', { email: attacker.email })
      const { code } = await codeTo(at.gateway, attacker.email)
      const new_password = 'the password of the owner'
      expect((await auth('reset', { email: attacker.email, code, new_password })).status).toBe(200)
      expect(await identitiesOf(at.gateway, attacker.id)).toEqual([])
      const again = await signIn({ ...identity, email_verified: false }, {}, 'beta')
      expectRefusal(again, ...refusals.unverified)
    })

    it('keeps its sessions if it is linked to a sign-in that contains its password', async () => {
      const user = await newUser(at.gateway)
      const linked = await signIn(newPerson({ email: user.email }), { password: user.password })
      expectPair(linked, 200)
      expect(await refreshes(user)).toBe(200)
    })

    it('is not given to a person with another email, even if the person sends the email and password of the account', async () => {
      const user = await newUser(at.gateway)
      const answer = await signIn(newPerson(), { password: user.password, email: user.email })
      expectPair(answer, 201)
      expect(await userOf(at, answer)).not.toBe(user.id)
    })
  })

  describe('an email', () => {
    const kelvin = '\u212a'
    it.each<[string, Claims]>([
      ['with a Kelvin sign', { email: `${kelvin}arl@example.com` }],
      ['with a Kelvin sign in the domain', { email: `karl@${kelvin}.example` }],
      ['with a long s', { email: 'karl@example.com'.replace('e', '\u017f') }],
      ['with a full-width letter', { email: '\uff4barl@example.com' }],
      ['with a combining accent', { email: 'ka\u0301rl@example.com' }],
      ['with a zero-width space', { email: 'karl\u200b@example.com' }],
      ['with NUL', { email: 'karl@example.com\u0000' }],
      ['with a comma', { email: 'karl@example.com,eve@example.com' }],
      ['in angle brackets', { email: '<karl@example.com>' }],
      ['with a space at the end', { email: 'karl@example.com ' }],
      ['with a space at the start', { email: ' karl@example.com' }],
      ['with a line break', { email: 'karl@example.com\r\nBcc: eve@example.com' }],
      ['with two domains', { email: 'karl@example.com@evil.example.com' }],
      ['with a comment', { email: 'karl(x)@example.com' }],
      ['in a list', { email: ['karl@example.com'] }],
      ['in an object', { email: { toString: 'karl@example.com' } }],
      ['of another domain', { email: 'karl@evil.com' }],
      ['of a subdomain', { email: 'karl@sub.example.com' }],
      ['of a domain that ends alike', { email: 'karl@evilexample.com' }],
      ['that is not verified', { email: 'karl@example.com', email_verified: false }],
      ['that is empty', { email: '' }],
      ['that is missing', { email: undefined }],
    ])('%s gives access to no account', async (_, claims) => {
      const [existing] = await usersWith(at.gateway, 'karl@example.com')
      const id =
        existing?.id ??
        (
          await at.gateway.sql<{ id: number }>(
            `insert into users (email, password_hash, email_verified_at) values ('karl@example.com', '!', now()),
               ('karl@k.example', '!', now()) returning id`,
          )
        )[0]?.id ??
        expect.unreachable()
      const before = await at.gateway.sql('select id from users order by id')
      expectRefusal(await signIn(newPerson(claims)), ...refusals.unverified)
      expectRefusal(await signIn(newPerson(claims), { password: 'x', reset: true }), ...refusals.unverified)
      expect(await at.gateway.sql('select id from users order by id')).toEqual(before)
      expect(await identitiesOf(at.gateway, id)).toEqual([])
    })

    it('in upper case gives access to the same account as in lower case', async () => {
      const user = await newUser(at.gateway)
      await verify(user)
      const email = user.email.toUpperCase()
      const answer = await signIn(newPerson({ email }))
      expectPair(answer, 200)
      expect(await userOf(at, answer)).toBe(user.id)
    })

    it('that the provider has changed leaves the person the same account, and gives access to no other account', async () => {
      const person = newPerson()
      const created = await signIn(person)
      const user = await userOf(at, created)
      const other = await newUser(at.gateway)
      await verify(other)
      const moved = await signIn({ ...person, email: other.email })
      expect(await userOf(at, moved)).toBe(user)
      expect((await usersWith(at.gateway, person.email))[0]?.id).toBe(user)
      // At the provider, the previous email now belongs to another person.
      expectRefusal(await signIn(newPerson({ email: person.email })), ...refusals.exists)
    })
  })

  describe('a changed sub', () => {
    it('always gets 409 account_exists: without a proof, with the password, and with a reset', async () => {
      const user = await newUser(at.gateway)
      await verify(user)
      expectPair(await signIn(newPerson({ email: user.email })), 200)
      const recreated = newPerson({ email: user.email })
      for (const proof of [{}, { password: user.password }, { reset: true }])
        expectRefusal(await signIn(recreated, proof), ...refusals.exists)
      expect(await identitiesOf(at.gateway, user.id)).toHaveLength(1)
      expect((await login(at.gateway.url, user.email, user.password)).access).not.toBe('undefined')
      // The account has no identity of the provider beta yet. So an identity of beta with the same email is linked.
      expectPair(await signIn(newPerson({ email: user.email }), {}, 'beta'), 200)
    })

    it.each(['SUB-1', 'sub-1 ', ' sub-1', 'sub-1\u200b', 'sub-\uff11'])(
      '%j identifies another person than sub-1',
      async sub => {
        const [known] = [newPerson({ sub: 'sub-1', email: 'sub-1@example.com' })]
        const first = await signIn(known)
        const second = await signIn(newPerson({ sub }))
        expectPair(second, 201)
        expect(await userOf(at, second)).not.toBe(await userOf(at, first))
      },
    )
  })

  it('an inactive account gives no session, with or without a proof', async () => {
    const user = await newUser(at.gateway)
    const person = newPerson({ email: user.email })
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    expectRefusal(await signIn(person), ...refusals.exists)
    for (const proof of [{ password: user.password }, { reset: true }])
      expectRefusal(await signIn(person, proof), ...refusals.credentials)
    await verify(user)
    for (const proof of [{}, { password: user.password }, { reset: true }])
      expectRefusal(await signIn(person, proof), ...refusals.credentials)
    expect(await identitiesOf(at.gateway, user.id)).toEqual([])
    expect((await usersWith(at.gateway, user.email))[0]?.password_hash).not.toBe('!')
  })

  it('an account with the password hash `!` gives no session, whatever password is sent', async () => {
    const person = newPerson()
    expectPair(await signIn(person), 201)
    for (const password of ['!', '', ' ']) {
      const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/login', {
        body: { email: person.email, password },
      })
      expect([400, 401]).toContain(answer.status)
    }
    await at.gateway.sql('update users set email_verified_at = null where email = $1', [person.email])
    const other = newPerson({ email: person.email })
    expectRefusal(await signIn(other, { password: '!' }, 'beta'), ...refusals.credentials)
  })
})
