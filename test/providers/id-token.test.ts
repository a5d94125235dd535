import { createHash, createHmac, createPublicKey } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  claimsOf,
  type Issuer,
  makeKey,
  openProvider,
  signToken,
  startIssuer,
  type TestKey,
} from './issuer.ts'

const [ec, rsa, foreign] = (await Promise.all([
  makeKey('ec'),
  makeKey('rsa', 'RS256'),
  makeKey('foreign'),
])) as [TestKey, TestKey, TestKey]

let idp: Issuer
beforeAll(async () => {
  idp = await startIssuer([ec, rsa])
})
afterAll(() => idp.close())

const invalid = expect.objectContaining({ reason: 'id_token_invalid' })
const hex = (text: string) => createHash('sha256').update(text).digest('hex')
const base64url = (text: string) => createHash('sha256').update(text).digest('base64url')
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

function open(settings = {}) {
  const { provider, clock } = openProvider(idp.config(settings))
  const token = (claims: JWTPayload = {}, header = {}, key = ec) =>
    signToken(key, claimsOf(idp, clock.now(), claims), header)
  const verify = async (claims: JWTPayload = {}, nonce?: string, header = {}, key = ec) =>
    provider.verifyIdToken(await token(claims, header, key), nonce)
  return { provider, clock, token, verify }
}

describe('a valid ID token', () => {
  it.each([
    ['ES256', ec],
    ['RS256', rsa],
  ])('signed with %s leads to the person, the hash, and the expiry of the stored hash', async (_, key) => {
    const { provider, token, clock } = open()
    const text = await token({ email: 'A.B@Example.com', email_verified: true }, { typ: 'JWT' }, key)
    expect(await provider.verifyIdToken(text, undefined)).toEqual({
      person: { issuer: idp.url, sub: 'person', email: 'a.b@example.com' },
      idToken: {
        hash: hex(text.split('.').slice(0, 2).join('.')),
        tooOldAt: new Date(clock.now() + 665_000),
      },
    })
  })

  it.each([
    ['one client', { aud: ['client'] }],
    ['further clients', { aud: ['client', 'app'], azp: 'app' }],
    ['only a further client', { aud: 'app', azp: 'app' }],
    ['another authorized party', { azp: 'client' }],
    ['the type ID', { typ: 'ID' }],
    ['a long subject', { sub: 'é'.repeat(255) }],
  ])('is accepted with %s', async (_, claims) => {
    await open({ audiences: ['app'] }).verify(claims)
  })

  it('leads to no email if the provider has not verified the email', async () => {
    const { person } = await open().verify({ email: 'a@example.com' })
    expect(person).toEqual({ issuer: idp.url, sub: 'person', email: undefined })
  })
})

describe('an ID token is refused if', () => {
  it.each<[string, JWTPayload]>([
    ['its issuer is another one', { iss: 'https://other.example.com' }],
    ['its issuer has one more slash', { iss: 'SLASH' }],
    ['its issuer is missing', { iss: undefined as never }],
    ['its audience is another client', { aud: 'other' }],
    ['its audience is a further client that is not configured', { aud: ['client', 'other'] }],
    ['its audience is empty', { aud: [] }],
    ['its audience is an empty text', { aud: '' }],
    ['its audience contains a list', { aud: [['client']] as never }],
    ['its audience is missing', { aud: undefined as never }],
    ['its authorized party is another client', { azp: 'other' }],
    ['its authorized party is null', { azp: null }],
    ['its authorized party is a list', { azp: ['client'] }],
    ['its expiry is missing', { exp: undefined as never }],
    ['its time of issue is missing', { iat: undefined as never }],
    ['its expiry is a text', { exp: '9999999999' as never }],
    ['its claim typ is Bearer', { typ: 'Bearer' }],
    ['its claim typ is Logout', { typ: 'Logout' }],
    ['it has the claim scp of access tokens', { scp: 'openid' }],
    ['it has the claim scope of access tokens', { scope: '' }],
    ['it has the claim events of logout tokens', { events: null }],
    ['its subject is missing', { sub: undefined as never }],
    ['its subject is empty', { sub: '' }],
    ['its subject is a number', { sub: 7 as never }],
    ['its subject is too long', { sub: 'a'.repeat(256) }],
    ['its subject contains NUL', { sub: 'a\0' }],
    ['its subject contains half a character', { sub: 'a\ud800' }],
    ['it has a nonce, but the request has none', { nonce: hex('nonce') }],
  ])('%s', async (_, claims) => {
    const replaced = claims.iss === 'SLASH' ? { iss: `${idp.url}/` } : claims
    await expect(open({ audiences: ['app'] }).verify(replaced)).rejects.toEqual(invalid)
  })

  it.each([['at+jwt'], ['logout+jwt'], ['jwt'], [''], [null]])('its header has the typ %j', async typ => {
    await expect(open().verify({}, undefined, { typ })).rejects.toEqual(invalid)
  })

  it('a different provider signed it', async () => {
    const { verify } = open()
    await expect(verify({}, undefined, {}, foreign)).rejects.toEqual(invalid)
    await expect(verify({}, undefined, { kid: 'ec' }, foreign)).rejects.toEqual(invalid)
  })

  it('its header contains the key that signed it', async () => {
    await expect(open().verify({}, undefined, { jwk: foreign.jwk, kid: 'ec' }, foreign)).rejects.toEqual(
      invalid,
    )
  })

  it('discovery does not list its algorithm', async () => {
    const previous = idp.discovery.id_token_signing_alg_values_supported
    idp.discovery.id_token_signing_alg_values_supported = ['RS256']
    await expect(open().verify()).rejects.toEqual(invalid)
    await open().verify({}, undefined, {}, rsa)
    idp.discovery.id_token_signing_alg_values_supported = previous
  })

  it('it has no signature, even if discovery lists the algorithm "none"', async () => {
    const { provider, clock } = open()
    const unsigned = `${encode({ alg: 'none' })}.${encode(claimsOf(idp, clock.now()))}`
    for (const text of [`${unsigned}.`, `${unsigned}.AAAA`, unsigned])
      await expect(provider.verifyIdToken(text, undefined)).rejects.toEqual(invalid)
  })

  it.each(['ec', 'rsa'])(
    'the public key %s was used as a shared secret to sign it with HS256, even if discovery lists HS256',
    async kid => {
      const { provider, clock } = open()
      const jwk = kid === 'ec' ? ec.jwk : rsa.jwk
      const pem = createPublicKey({ key: jwk as never, format: 'jwk' }).export({
        type: 'spki',
        format: 'pem',
      })
      for (const secret of [pem, JSON.stringify(jwk), jwk.n ?? jwk.x ?? '']) {
        const head = `${encode({ alg: 'HS256', kid })}.${encode(claimsOf(idp, clock.now()))}`
        const signature = createHmac('sha256', secret).update(head).digest('base64url')
        await expect(provider.verifyIdToken(`${head}.${signature}`, undefined)).rejects.toEqual(invalid)
      }
    },
  )

  it.each(['', '.', '..', 'a.b.c', 'é.é.é', 'text', `${encode({ alg: 'ES256' })}.e30`])(
    'it is %j',
    async text => {
      await expect(open().provider.verifyIdToken(text, undefined)).rejects.toEqual(invalid)
    },
  )

  it('one character of it was changed', async () => {
    const { provider, token } = open()
    const text = await token()
    for (const at of [5, text.indexOf('.') + 5]) {
      const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
      await expect(provider.verifyIdToken(changed, undefined)).rejects.toEqual(invalid)
    }
  })

  it('the key of the provider is malformed', async () => {
    const broken = await startIssuer([ec])
    broken.jwks.keys = [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'ec' }]
    const { provider, clock } = openProvider(broken.config())
    const text = await signToken(ec, claimsOf(broken, clock.now()))
    await expect(provider.verifyIdToken(text, undefined)).rejects.toEqual(invalid)
    await broken.close()
  })
})

describe('the age of an ID token', () => {
  it('is at most 10 minutes, with a tolerance of 5 s', async () => {
    const { provider, token, clock } = open()
    const text = await token()
    clock.move(605_000)
    await provider.verifyIdToken(text, undefined)
    clock.move(1_000)
    await expect(provider.verifyIdToken(text, undefined)).rejects.toEqual(invalid)
  })

  it('can be negative by at most 5 s, because the clock of the provider may be fast', async () => {
    const { verify, clock } = open()
    const now = clock.now() / 1_000
    await verify({ iat: now + 5 })
    await expect(verify({ iat: now + 6 })).rejects.toEqual(invalid)
  })

  it('can exceed the lifetime of the token by less than 5 s', async () => {
    const { verify, clock } = open()
    const now = clock.now() / 1_000
    await verify({ exp: now - 4 })
    await expect(verify({ exp: now - 5 })).rejects.toEqual(invalid)
  })

  it('becomes too high before the stored hash of the token may be deleted', async () => {
    const { provider, token, clock } = open()
    const text = await token({ exp: 1e300 })
    const { idToken } = await provider.verifyIdToken(text, undefined)
    clock.move(idToken.tooOldAt.getTime() - clock.now() - 59_000)
    await expect(provider.verifyIdToken(text, undefined)).rejects.toEqual(invalid)
  })
})

describe('the nonce of an app', () => {
  it.each([hex, base64url])('is accepted if the token contains the SHA-256 of the nonce', async digest => {
    await open().verify({ nonce: digest('a nonce') }, 'a nonce')
  })

  it.each<[string, unknown]>([
    ['no nonce', undefined],
    ['the nonce itself', 'a nonce'],
    ['another nonce', hex('another nonce')],
    ['the SHA-256 in upper case', hex('a nonce').toUpperCase()],
    ['the SHA-256 with padding', `${base64url('a nonce')}=`],
    ['a list', [hex('a nonce')]],
    ['an empty nonce', ''],
  ])('is refused if the token contains %s', async (_, nonce) => {
    await expect(open().verify({ nonce }, 'a nonce')).rejects.toEqual(invalid)
  })

  it('is refused if the app sends the SHA-256 from the token instead of the nonce', async () => {
    await expect(open().verify({ nonce: hex('a nonce') }, hex('a nonce'))).rejects.toEqual(invalid)
  })
})

describe('the hash of an ID token', () => {
  it('is the same for all valid signatures of the same token', async () => {
    const { provider, token } = open()
    const text = await token()
    const { hash } = (await provider.verifyIdToken(text, undefined)).idToken
    const accepted = []
    for (const other of otherSignatures(text)) {
      const result = await provider.verifyIdToken(other, undefined).catch(() => undefined)
      if (result !== undefined) accepted.push(result.idToken.hash)
    }
    // With ECDSA, the changed signature (r, n-s) is also valid. So at least one signature is accepted.
    expect(accepted.length).toBeGreaterThan(0)
    expect(new Set(accepted)).toEqual(new Set([hash]))
  })

  it('differs between two tokens', async () => {
    const { verify } = open()
    const [first, second] = [await verify({ jti: '1' }), await verify({ jti: '2' })]
    expect(first.idToken.hash).not.toBe(second.idToken.hash)
  })
})

/** Changes the ES256 signature in several ways, without the private key. @returns the changed tokens */
function otherSignatures(token: string): string[] {
  const [header, payload, signature = ''] = token.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  const negated = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')])
  const last = signature.at(-1) as string
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const neighbor = alphabet[alphabet.indexOf(last) ^ 1]
  return [
    negated.toString('base64url'),
    signature.slice(0, -1) + neighbor,
    `${signature}==`,
    ` ${signature}`,
  ].map(other => `${header}.${payload}.${other}`)
}

describe('the message of a refused ID token', () => {
  it('contains no part of the token', async () => {
    const { provider, token } = open()
    const secrets = {
      sub: 'secret-sub',
      email: 'secret@example.com',
      nonce: 'secret-nonce',
      aud: 'secret-aud',
    }
    const texts = [
      await token(secrets),
      await token({ ...secrets, iss: 'secret-iss' }),
      `${await token(secrets)}x`,
    ]
    for (const text of texts) {
      const error = await provider.verifyIdToken(text, undefined).catch((failure: Error) => failure)
      expect(error).toEqual(invalid)
      const logged = JSON.stringify(error) + (error as Error).message
      for (const part of ['secret', ...text.split('.')]) expect(logged).not.toContain(part)
    }
  })
})
