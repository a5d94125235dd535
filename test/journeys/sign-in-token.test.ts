// Apps sign users in with ID tokens. Each ID token gives one session.
import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, call, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type OidcProvider, startOidcProvider } from '../support/oidc-provider.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups, eitherSetup } from '../support/setups.ts'
import {
  expectPair,
  identitiesOf,
  newPerson,
  pathOf,
  refusals,
  sendIdToken,
  signInStage,
  userOf,
  usersWith,
} from '../support/sign-in.ts'

const hashOf = (nonce: string, encoding: 'hex' | 'base64url') =>
  createHash('sha256').update(nonce).digest(encoding)

describe('with a real provider', () => {
  const client = { id: 'app', redirectUris: ['http://127.0.0.1:1/app'] }
  const ada = { sub: 'ada-1', email: 'ada@example.com', email_verified: true }
  let provider: OidcProvider
  let gateway: TestGateway
  beforeAll(async () => {
    provider = await startOidcProvider({ clients: [client], users: { ada } })
    gateway = await startGateway('', await eitherSetup().open(), {
      auth: `, providers: { company: { issuer: '${provider.issuer}', client_id: web, audiences: [app] } }`,
    })
    gateway.clock.now = Date.now
  })
  afterAll(async () => {
    await gateway?.stop()
    await provider?.close()
  })

  it('an app gets one session for each ID token, with and without a nonce', async () => {
    const nonce = randomUUID()
    const answers: Answer[] = []
    for (const nonceClaim of [undefined, hashOf(nonce, 'hex'), hashOf(nonce, 'base64url')]) {
      const asked = nonceClaim === undefined ? {} : { nonce: nonceClaim }
      const { idToken } = await provider.tokensForApp({ clientId: 'app', login: 'ada', ...asked })
      const body = { id_token: idToken, ...(nonceClaim === undefined ? {} : { nonce }) }
      answers.push(await sendIdToken(gateway, body, 'company'))
      expectRefusal(await sendIdToken(gateway, body, 'company'), ...refusals.tokenInvalid)
    }
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200])
    expect(await gateway.sql('select from refresh_tokens')).toHaveLength(3)
  })

  it('an access token of the provider is not accepted as an ID token', async () => {
    const { accessToken } = await provider.tokensForApp({ clientId: 'app', login: 'ada' })
    expectRefusal(await sendIdToken(gateway, { id_token: accessToken }, 'company'), ...refusals.tokenInvalid)
  })
})

describeOverSetups('an app with an ID token', setup => {
  const at = signInStage(setup, { alpha: ', audiences: [ios, android]' })
  const refused = async (sent: Promise<Answer>, refusal: readonly [number, string, string]) =>
    expectRefusal(await sent, ...refusal)

  describe('gets', () => {
    it('a session of the same account with each new token of a person', async () => {
      const person = newPerson()
      const created = await sendIdToken(at.gateway, { id_token: await at.alpha.idToken(person) })
      expectPair(created, 201)
      const again = await sendIdToken(at.other, { id_token: await at.alpha.idToken(person) })
      expectPair(again, 200)
      const user = await userOf(at, created)
      expect(await userOf(at, again)).toBe(user)
      expect(await usersWith(at.gateway, person.email)).toEqual([
        { id: user, password_hash: '!', isVerified: true },
      ])
    })

    const nonce = 'a nonce of the app'
    it.each([
      ['Google', { azp: 'android', aud: 'client', hd: 'example.com', email_verified: true }, {}],
      [
        'Apple',
        {
          aud: 'ios',
          email_verified: 'true',
          is_private_email: 'true',
          nonce: hashOf(nonce, 'hex'),
          nonce_supported: true,
        },
        { nonce },
      ],
      ['Apple with a boolean', { aud: ['ios'], email_verified: true, is_private_email: false }, {}],
      [
        'Keycloak',
        {
          azp: 'client',
          typ: 'ID',
          sid: 'x',
          acr: '1',
          email_verified: true,
          nonce: hashOf(nonce, 'base64url'),
        },
        { nonce },
      ],
    ])('an account for a token with the claims of %s', async (_, claims, body) => {
      const id_token = await at.alpha.idToken(newPerson(claims), { typ: 'JWT' })
      expectPair(await sendIdToken(at.gateway, { id_token, ...body }), 201)
    })

    it.each([['false'], [false], [1], ['TRUE'], ['True'], [null], [undefined], [['true']], [{ true: true }]])(
      '403 if email_verified is %j',
      async email_verified => {
        const id_token = await at.alpha.idToken(newPerson({ email_verified }))
        await refused(sendIdToken(at.gateway, { id_token }), refusals.unverified)
      },
    )

    it('403 for xms_edov if the issuer is not Microsoft', async () => {
      const claims = { email_verified: undefined, xms_edov: true, tid: randomUUID(), ver: '2.0' }
      const id_token = await at.alpha.idToken(newPerson(claims))
      await refused(sendIdToken(at.gateway, { id_token }), refusals.unverified)
    })

    it('404 for an unknown provider, and 405 for other methods', async () => {
      const id_token = await at.alpha.idToken(newPerson())
      for (const name of ['gamma', '__proto__', 'constructor'])
        await refused(sendIdToken(at.gateway, { id_token }, name), refusals.unknown)
      for (const method of ['GET', 'HEAD', 'PUT'])
        expect((await call(at.gateway.url, method, pathOf('alpha', 'token'))).status).toBe(405)
    })

    it.each([[undefined], [null], [''], ['  '], [7], [['x']], [{ a: 1 }]])(
      '400 if id_token is %j',
      id_token => refused(sendIdToken(at.gateway, { id_token }), refusals.tokenMissing),
    )
  })

  describe('cannot use a token again', () => {
    it('at the same replica or at another replica', async () => {
      const body = { id_token: await at.alpha.idToken(newPerson()) }
      expectPair(await sendIdToken(at.gateway, body), 201)
      for (const gateway of [at.gateway, at.other, at.gateway])
        await refused(sendIdToken(gateway, body), refusals.tokenInvalid)
    })

    it('with the other valid ES256 signature of the same token', async () => {
      const [header = '', payload = '', signature = ''] = (await at.alpha.idToken(newPerson())).split('.')
      const rewritten = withOtherSignature(signature)
      expect(rewritten).not.toBe(signature)
      const send = (text: string) => sendIdToken(at.gateway, { id_token: `${header}.${payload}.${text}` })
      // The rewritten signature is valid. So the other token can be refused only because it is stored as used.
      expectPair(await send(rewritten), 201)
      await refused(send(signature), refusals.tokenInvalid)
      await refused(send(rewritten), refusals.tokenInvalid)
    })

    it('with another encoding of the same signature', async () => {
      const id_token = await at.alpha.idToken(newPerson())
      const last = id_token.at(-1) ?? ''
      // A signature has 86 base64url characters. Four bits of the last character are unused.
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      const other = alphabet[alphabet.indexOf(last) ^ 1]
      expectPair(await sendIdToken(at.gateway, { id_token }), 201)
      for (const spelling of [id_token.slice(0, -1) + other, `${id_token}==`, ` ${id_token}\n`])
        await refused(sendIdToken(at.other, { id_token: spelling }), refusals.tokenInvalid)
    })

    it('at another provider', async () => {
      const id_token = await at.alpha.idToken(newPerson())
      await refused(sendIdToken(at.gateway, { id_token }, 'beta'), refusals.tokenInvalid)
      expectPair(await sendIdToken(at.gateway, { id_token }), 201)
    })

    it('in a concurrent request; only one of 20 requests succeeds', async () => {
      const body = { id_token: await at.alpha.idToken(newPerson()) }
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => sendIdToken(i % 2 === 0 ? at.gateway : at.other, body)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(401)])
    })

    it('until it is too old, even at a replica whose clock is a minute behind', async () => {
      const body = { id_token: await at.alpha.idToken(newPerson()) }
      expectPair(await sendIdToken(at.gateway, body), 201)
      const [used] = await at.gateway.sql<{ expires_at: Date }>(
        'select expires_at from used_id_tokens order by expires_at desc limit 1',
      )
      expect(Number(used?.expires_at) - Date.now()).toBeGreaterThan(10 * 60_000 + 55_000)
      at.move(10 * 60_000)
      await refused(sendIdToken(at.other, body), refusals.tokenInvalid)
    })
  })

  describe('can use a token again after a response without a token pair', () => {
    it('with the password, if the account has an unverified email', async () => {
      const user = await newUser(at.gateway)
      const person = newPerson({ email: user.email })
      const id_token = await at.alpha.idToken(person)
      const send = (more: object) => sendIdToken(at.gateway, { id_token, ...more })
      await refused(send({}), refusals.exists)
      await refused(send({ password: 'a wrong password' }), refusals.credentials)
      await refused(send({ reset: 'true' }), refusals.exists)
      expect(await identitiesOf(at.gateway, user.id)).toEqual([])
      const linked = await send({ password: user.password })
      expectPair(linked, 200)
      expect(await userOf(at, linked)).toBe(user.id)
      expect(await usersWith(at.gateway, user.email)).toMatchObject([{ isVerified: true }])
      await refused(send({ password: user.password }), refusals.tokenInvalid)
    })

    it('with a reset, if the account has an unverified email', async () => {
      const user = await newUser(at.gateway)
      const id_token = await at.alpha.idToken(newPerson({ email: user.email }))
      await refused(sendIdToken(at.gateway, { id_token }), refusals.exists)
      expectPair(await sendIdToken(at.gateway, { id_token, reset: true }), 200)
      expect(await usersWith(at.gateway, user.email)).toEqual([
        { id: user.id, password_hash: '!', isVerified: true },
      ])
    })

    it('if the user was inactive at first', async () => {
      const user = await newUser(at.gateway)
      await at.gateway.sql('update users set email_verified_at = now(), is_active = 0 where id = $1', [
        user.id,
      ])
      const id_token = await at.alpha.idToken(newPerson({ email: user.email }))
      await refused(sendIdToken(at.gateway, { id_token }), refusals.credentials)
      await at.gateway.sql('update users set is_active = 1 where id = $1', [user.id])
      expectPair(await sendIdToken(at.gateway, { id_token }), 200)
    })
  })
})

describe('the limits of the token endpoint', () => {
  const at = signInStage(eitherSetup(), {
    rateLimits: 'rate_limits: { external: 6/1m, login_failures: 2/5m }',
    replicas: 1,
  })

  it('are shared by the start and token endpoints of all providers; wrong passwords count like failed logins', async () => {
    const user = await newUser(at.gateway)
    const id_token = await at.alpha.idToken(newPerson({ email: user.email }))
    const statuses: number[] = []
    for (const password of ['wrong 1', 'wrong 2', user.password])
      statuses.push((await sendIdToken(at.gateway, { id_token, password })).status)
    expect(statuses).toEqual([401, 401, 429])
    const login = { email: user.email, password: user.password }
    expect((await call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: login })).status).toBe(429)
    for (let i = 0; i < 3; i += 1) await call(at.gateway.url, 'GET', pathOf('beta', 'start'))
    for (const limited of [
      await sendIdToken(at.gateway, { id_token }),
      await sendIdToken(at.gateway, { id_token }, 'beta'),
      await call(at.gateway.url, 'GET', pathOf('alpha', 'start')),
    ]) {
      expect([limited.status, limited.headers.get('x-peage-error')]).toEqual([429, 'rate_limited'])
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    }
  })
})

const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')

/** Replaces `s` with `n - s`. The signature stays valid, because ECDSA accepts both (FIPS 186-5, section 6.4). */
function withOtherSignature(signature: string): string {
  const hex = Buffer.from(signature, 'base64url').toString('hex')
  const s = order - BigInt(`0x${hex.slice(64)}`)
  return Buffer.from(hex.slice(0, 64) + s.toString(16).padStart(64, '0'), 'hex').toString('base64url')
}
