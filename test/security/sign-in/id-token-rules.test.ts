// Each test case changes a valid ID token in one point. The gateway must refuse the token unless the change is allowed.
import { createHash, createHmac, createPublicKey } from 'node:crypto'
import { base64url, exportSPKI, importJWK, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimsOf, makeKey, signToken, type TestKey } from '../../providers/issuer.ts'
import { type Claims, type CodeIssuer, startCodeIssuer } from '../../support/code-issuer.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { expectRefusal } from '../../support/refusals.ts'
import { eitherSetup, type Setup } from '../../support/setups.ts'
import { expectPair, newPerson, refusals, sendIdToken, withoutLimits } from '../../support/sign-in.ts'

/** How a token differs from a valid one. */
interface Case {
  readonly claims?: Claims
  readonly header?: Readonly<Record<string, unknown>>
  /** The nonce that the app sends together with the token. */
  readonly nonce?: unknown
}

const now = () => Math.floor(Date.now() / 1_000)
const hex = (text: string) => createHash('sha256').update(text).digest('hex')
const nonce = 'the nonce of the app'

describe('an ID token', () => {
  const setup: Setup = eitherSetup()
  let issuer: CodeIssuer
  let another: CodeIssuer
  let gateway: TestGateway
  /** A key of the provider for an algorithm that its discovery document does not list. */
  let unlisted: TestKey
  beforeAll(async () => {
    issuer = await startCodeIssuer()
    another = await startCodeIssuer()
    unlisted = await makeKey('unlisted', 'RS256')
    issuer.jwks.keys.push(unlisted.jwk)
    issuer.discovery.id_token_signing_alg_values_supported = ['ES256', 'HS256', 'none']
    gateway = await startGateway('', await setup.open(), {
      rateLimits: withoutLimits,
      auth: `, providers: {
        own: { issuer: '${issuer.url}', client_id: client, audiences: [ios, ''] },
        another: { issuer: '${another.url}', client_id: client } }`,
    })
    gateway.clock.now = Date.now
  })
  afterAll(async () => {
    await gateway?.stop()
    await issuer?.close()
    await another?.close()
  })

  const claimsWith = (claims: Claims = {}): JWTPayload => ({
    ...claimsOf(issuer, Date.now()),
    ...newPerson(),
    ...claims,
  })

  async function send(id_token: string, sentNonce?: unknown) {
    return sendIdToken(gateway, { id_token, ...(sentNonce === undefined ? {} : { nonce: sentNonce }) }, 'own')
  }

  async function expectRefused(id_token: string, sentNonce?: unknown): Promise<void> {
    const before = await gateway.sql('select from users')
    expectRefusal(await send(id_token, sentNonce), ...refusals.tokenInvalid)
    expect(await gateway.sql('select from users')).toEqual(before)
  }

  it.each<[string, Case]>([
    ['without further claims', {}],
    ['with the header typ JWT and the claim typ ID', { header: { typ: 'JWT' }, claims: { typ: 'ID' } }],
    ['with another client of the configuration', { claims: { aud: ['client', 'ios'], azp: 'ios' } }],
    ['that was issued 10 minutes ago', { claims: { iat: now() - 10 * 60 + 60 } }],
    ['with the SHA-256 of the nonce', { claims: { nonce: hex(nonce) }, nonce }],
    ['without a nonce, and null in the request', { nonce: null }],
  ])('%s is accepted', async (_, { claims = {}, header = {}, nonce: sent }) => {
    expectPair(await send(await issuer.idToken(newPerson(claims), header), sent), 201)
  })

  it.each<[string, Case]>([
    ['another aud', { claims: { aud: 'another' } }],
    ['an additional aud', { claims: { aud: ['client', 'another'] } }],
    ['no aud', { claims: { aud: undefined } }],
    ['an empty list of aud', { claims: { aud: [] } }],
    ['an empty aud', { claims: { aud: '' } }],
    ['an aud that is no text', { claims: { aud: ['client', 7] } }],
    ['another azp', { claims: { azp: 'another' } }],
    ['an empty azp', { claims: { azp: '' } }],
    ['an azp that is null', { claims: { azp: null } }],
    ['no iss', { claims: { iss: undefined } }],
    ['another iss', { claims: { iss: 'https://accounts.example.com' } }],
    ['a list of iss', { claims: { iss: ['x'] } }],
    ['no exp', { claims: { exp: undefined } }],
    ['an exp in the past', { claims: { exp: now() - 10 } }],
    ['an exp that is a text', { claims: { exp: String(now() + 600) } }],
    ['an nbf in the future', { claims: { nbf: now() + 600 } }],
    ['no iat', { claims: { iat: undefined } }],
    ['an old iat', { claims: { iat: now() - 10 * 60 - 10 } }],
    ['an iat in the future', { claims: { iat: now() + 600 } }],
    ['the header typ at+jwt', { header: { typ: 'at+jwt' } }],
    ['the header typ application/at+jwt', { header: { typ: 'application/at+jwt' } }],
    ['the header typ logout+jwt', { header: { typ: 'logout+jwt' } }],
    ['an empty header typ', { header: { typ: '' } }],
    ['the claim typ Bearer', { claims: { typ: 'Bearer' } }],
    ['the claim typ Refresh', { claims: { typ: 'Refresh' } }],
    ['the claim typ Logout', { claims: { typ: 'Logout' } }],
    ['the claim scp', { claims: { scp: 'openid' } }],
    ['the claim scope', { claims: { scope: 'openid email' } }],
    ['an empty claim scope', { claims: { scope: '' } }],
    ['the claim events', { claims: { events: {} } }],
    ['no sub', { claims: { sub: undefined } }],
    ['an empty sub', { claims: { sub: '' } }],
    ['a sub that is a number', { claims: { sub: 7 } }],
    ['a sub with NUL', { claims: { sub: 'a\u0000b' } }],
    ['a sub with half a surrogate pair', { claims: { sub: 'a\ud800' } }],
    ['a sub of 256 characters', { claims: { sub: 's'.repeat(256) } }],
    ['a nonce, but the request has none', { claims: { nonce: hex(nonce) } }],
    ['a nonce, and null in the request', { claims: { nonce: hex(nonce) }, nonce: null }],
    ['no nonce, but the request has one', { nonce }],
    ['the nonce itself', { claims: { nonce }, nonce }],
    ['the hash of another nonce', { claims: { nonce: hex('another') }, nonce }],
    ['the hash in upper case', { claims: { nonce: hex(nonce).toUpperCase() }, nonce }],
    ['the hash as a nonce of the request', { claims: { nonce: hex(nonce) }, nonce: hex(nonce) }],
    ['an empty nonce', { claims: { nonce: '' }, nonce: '' }],
    ['a nonce that is a number', { claims: { nonce: 7 }, nonce: 7 }],
    ['a nonce that is null', { claims: { nonce: null }, nonce: null }],
    ['a critical header that the gateway does not support', { header: { crit: ['x'], x: 1 } }],
    ['an algorithm that discovery does not list', { header: { kid: 'unlisted', alg: 'RS256' } }],
  ])('with %s is refused', async (_, { claims, header, nonce: sent }) => {
    const key = header?.kid === 'unlisted' ? unlisted : issuer.key
    // jose refuses to sign with a critical header that it does not support, so this token is built by hand.
    if (header?.crit !== undefined) return expectRefused(await signByHand(claimsWith(claims), header))
    return expectRefused(await signToken(key, claimsWith(claims), header), sent)
  })

  it('from another provider is refused, with the iss of that provider and with the expected iss', async () => {
    await expectRefused(await another.idToken(newPerson()))
    for (const { kid } of [another.key, issuer.key])
      await expectRefused(await signToken(another.key, claimsWith(), { kid }))
    expectPair(await sendIdToken(gateway, { id_token: await another.idToken(newPerson()) }, 'another'), 201)
  })

  it('with the key of an attacker in its header is refused', async () => {
    const own = await makeKey(issuer.key.kid)
    for (const header of [
      {},
      { jwk: own.jwk },
      { jku: `${another.url}/keys`, kid: another.key.kid },
      { x5u: `${another.url}/keys` },
      { kid: undefined },
    ])
      await expectRefused(await signToken(own, claimsWith(), header))
    expect(another.count('/keys')).toBeLessThanOrEqual(1)
  })

  it.each(['none', 'None', 'NONE', 'nOnE', ''])(
    'without a signature and with alg %j is refused',
    async alg => {
      for (const header of [{ alg }, { alg, kid: issuer.key.kid }, { alg, typ: 'JWT' }]) {
        const unsigned = `${encode(header)}.${encode(claimsWith())}`
        for (const signature of ['', '.', '.AAAA', `.${'A'.repeat(86)}`])
          await expectRefused(unsigned + signature)
      }
    },
  )

  it('with the signature of another token is refused', async () => {
    const [header = '', , signature = ''] = (await issuer.idToken(newPerson())).split('.')
    await expectRefused(`${header}.${encode(claimsWith())}.${signature}`)
    await expectRefused(`${header}.${encode(claimsWith())}.${'A'.repeat(86)}`)
  })

  it('signed by HMAC with the public key as the secret is refused', async () => {
    const { jwk, kid } = issuer.key
    const publicKey = await importJWK(jwk, 'ES256')
    const pem = await exportSPKI(publicKey as never)
    const der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
    const secrets = [pem, pem.trim(), JSON.stringify(jwk), jwk.x, jwk.y, 'secret', '']
    for (const secret of [der, ...secrets.map(text => Buffer.from(String(text)))])
      for (const alg of ['HS256', 'HS512'])
        for (const header of [{ alg, kid }, { alg }]) {
          const signing = `${encode(header)}.${encode(claimsWith())}`
          const mac = createHmac(alg === 'HS256' ? 'sha256' : 'sha512', secret).update(signing)
          await expectRefused(`${signing}.${mac.digest('base64url')}`)
        }
  })

  it('is refused if it is not a signed JWT', async () => {
    const valid = await issuer.idToken(newPerson())
    const [header = '', payload = '', signature = ''] = valid.split('.')
    const json = JSON.stringify({ protected: header, payload, signature })
    for (const text of [
      ...['x', '.', '..', 'a.b.c', 'null', '{}', '[]', 'ey.ey.ey', '\u0000', 'é.é.é', json],
      `${valid}.x`,
      `${valid}.x.y`,
      `.${payload}.${signature}`,
      `${header}..${signature}`,
      `${header}.${encode('text')}.${signature}`,
      `${header}.${Buffer.from('[]').toString('base64url')}.${signature}`,
      'x'.repeat(60_000),
    ])
      await expectRefused(text)
    expectPair(await send(valid), 201)
  })

  /** Signs a token with a header that jose refuses to sign. */
  async function signByHand(claims: JWTPayload, header: object): Promise<string> {
    const { kid, privateKey } = issuer.key
    const signing = `${encode({ alg: 'ES256', kid, ...header })}.${encode(claims)}`
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
    const signature = await crypto.subtle.sign(algorithm, privateKey, Buffer.from(signing))
    return `${signing}.${base64url.encode(new Uint8Array(signature))}`
  }

  it('is accepted if this test signs it by hand without a critical header', async () => {
    expectPair(await send(await signByHand(claimsWith(), {})), 201)
  })

  it('signed with a symmetric key from the JWK Set is refused', async () => {
    const secret = Buffer.alloc(32, 7)
    another.jwks.keys.push({ kty: 'oct', kid: 'oct', k: secret.toString('base64url'), alg: 'HS256' })
    const claims = { ...claimsOf(another, Date.now()), ...newPerson() }
    const id_token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'oct' }).sign(secret)
    expectRefusal(await sendIdToken(gateway, { id_token }, 'another'), ...refusals.tokenInvalid)
  })
})

function encode(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url')
}
