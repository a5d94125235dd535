import { createHmac, KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { exportSPKI, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  generatePrivateJwk,
  readPrivateJwk,
  type SigningKey,
} from '../../../src/identity/keys/signing-key.ts'
import type { SigningKeys } from '../../../src/identity/keys/signing-keys.ts'
import {
  createTokens,
  isGatewayToken,
  parseSubject,
  type TokenProblem,
  type Tokens,
} from '../../../src/identity/tokens/tokens.ts'
import { StorageError } from '../../../src/storage/database.ts'
import { type MovableClock, movableClock } from '../../accounts/setup.ts'
import { runs } from '../../support/property-runs.ts'
import { endless } from '../../support/sessions.ts'

const user = { id: 42, email: 'a@b.c', plan: 'pro' as const }
const key = await readPrivateJwk((await generatePrivateJwk('ES256')).text)
const attacker = await readPrivateJwk((await generatePrivateJwk('ES256')).text)
const publicPem = await exportSPKI(key.publicKey)
const ours = { alg: 'ES256', typ: 'at+jwt', kid: key.kid }

let clock: MovableClock
let tokens: Tokens
beforeEach(() => {
  clock = movableClock()
  tokens = tokensOf(key)
})

function tokensOf(...keys: SigningKey[]): Tokens {
  return tokensWith(ringOf(...keys))
}

function ringOf(...keys: SigningKey[]): SigningKeys {
  const getLoaded = (kid: string) => keys.find(each => each.kid === kid)
  return {
    current: () => keys[0] as SigningKey,
    forAssertions: (): never => expect.unreachable('another key may still sign assertions'),
    getLoaded,
    find: async kid => getLoaded(kid),
    jwks: () => ({ keys: [] }),
    reload: async () => {},
  }
}

function tokensWith(keys: SigningKeys): Tokens {
  return createTokens({
    ...{ keys, clock, issuer: 'peage', audience: 'peage' },
    accessTokenTtlMs: 15 * 60_000,
    refreshTokenTtlMs: 30 * 24 * 60 * 60_000,
  })
}

const seconds = () => Math.floor(clock.now() / 1000)
const goodClaims = () => ({
  iss: 'peage',
  aud: 'peage',
  sub: '42',
  iat: seconds(),
  exp: seconds() + 60,
  jti: 'x',
})
const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Signs any header and any claims. Uses `node:crypto`, because jose would refuse to sign some of these tokens. */
function forge(header: unknown, claims: unknown, privateKey = key.privateKey): string {
  const signed = `${part(header)}.${part(claims)}`
  const signature = sign('sha256', Buffer.from(signed), {
    key: KeyObject.from(privateKey),
    dsaEncoding: 'ieee-p1363',
  })
  return `${signed}.${signature.toString('base64url')}`
}

const decoded = (token: string) =>
  token
    .split('.')
    .slice(0, 2)
    .map(each => JSON.parse(Buffer.from(each, 'base64url').toString()))

describe('issued tokens', () => {
  it('an access token contains its user, audience and expiry, and is valid for 15 minutes', async () => {
    const token = await tokens.issueAccess(user, endless)
    expect(decoded(token)).toEqual([
      ours,
      {
        iss: 'peage',
        aud: 'peage',
        sub: '42',
        plan: 'pro',
        email: 'a@b.c',
        iat: seconds(),
        exp: seconds() + 900,
        jti: expect.stringMatching(/^[\w-]{22}$/),
        sid: endless.id,
      },
    ])
    const good = {
      userId: 42,
      kid: key.kid,
      expiresAtMs: (seconds() + 900) * 1000,
      issuedAtMs: seconds() * 1000,
      sessionId: endless.id,
    }
    expect(await tokens.verifyAccess(token)).toEqual(good)
    clock.advance(15 * 60_000 - (clock.now() % 1000) - 1)
    expect(await tokens.verifyAccess(token)).toEqual(good)
    clock.advance(1)
    expect(await tokens.verifyAccess(token)).toBe('expired')
  })

  it('a refresh token contains its user and expiry but no account data, and is valid for 30 days', async () => {
    const { token, expiresAt } = await tokens.issueRefresh(42, endless)
    const lifetime = 30 * 24 * 60 * 60
    expect(expiresAt.getTime()).toBe(clock.now() + lifetime * 1000)
    expect(decoded(token)).toEqual([
      { ...ours, typ: 'rt+jwt' },
      {
        iss: 'peage',
        aud: 'peage',
        sub: '42',
        iat: seconds(),
        exp: seconds() + lifetime,
        jti: expect.any(String),
        sid: endless.id,
      },
    ])
    expect(await tokens.verifyRefresh(token)).toMatchObject({ userId: 42 })
  })

  it('no token is valid longer than its session', async () => {
    const session = { ...endless, endsAtMs: clock.now() + 60_000 }
    const [, access] = decoded(await tokens.issueAccess(user, session))
    const { token, expiresAt } = await tokens.issueRefresh(42, session)
    expect([access.exp, decoded(token)[1].exp]).toEqual([seconds() + 60, seconds() + 60])
    expect(expiresAt.getTime()).toBe(session.endsAtMs)
  })

  it('if the key of a refresh token is loaded, the token is verified without the store', async () => {
    const { token } = await tokens.issueRefresh(42, endless)
    expect(await tokens.verifyRefreshOffline(token)).toMatchObject({ userId: 42 })
    expect(await tokens.verifyRefreshOffline(await tokens.issueAccess(user, endless))).toBe('type')
    expect(await tokensOf(attacker).verifyRefreshOffline(token)).toBe('key_unknown')
  })

  it('two tokens for the same user differ, even if they are issued at the same time', async () => {
    expect(await tokens.issueAccess(user, endless)).not.toBe(await tokens.issueAccess(user, endless))
    expect((await tokens.issueRefresh(42, endless)).token).not.toBe(
      (await tokens.issueRefresh(42, endless)).token,
    )
  })

  it('an access token is not a refresh token, and a refresh token is not an access token', async () => {
    expect(await tokens.verifyRefresh(await tokens.issueAccess(user, endless))).toBe('type')
    expect(await tokens.verifyAccess((await tokens.issueRefresh(42, endless)).token)).toBe('type')
  })

  it.each(['ES256', 'EdDSA', 'RS256'] as const)('are signed and verified with %s', async alg => {
    const other = await readPrivateJwk((await generatePrivateJwk(alg)).text)
    const token = await tokensOf(other).issueAccess(user, endless)
    expect(decoded(token)[0]).toMatchObject({ alg })
    expect(await tokensOf(key, other).verifyAccess(token)).toMatchObject({ userId: 42, kid: other.kid })
    expect(await tokensOf(key).verifyAccess(token)).toBe('key_unknown')
  })

  it('an access token with the longest email that an account can have is accepted', async () => {
    const email = `${'😀'.repeat(252)}@b`
    const other = await readPrivateJwk((await generatePrivateJwk('RS256')).text)
    const token = await tokensOf(other).issueAccess({ ...user, email }, endless)
    expect(await tokensOf(other).verifyAccess(token)).toMatchObject({ userId: 42 })
  })

  it('if the store fails, the verification of a token throws an error and does not report the token as invalid', async () => {
    const away = new StorageError('away', undefined, undefined)
    const lost = tokensWith({
      ...ringOf(key),
      getLoaded: () => undefined,
      find: () => Promise.reject(away),
    })
    await expect(lost.verifyAccess(await lost.issueAccess(user, endless))).rejects.toBe(away)
    expect(await lost.verifyRefreshOffline((await lost.issueRefresh(42, endless)).token)).toBe('key_unknown')
    // A malformed token is reported as invalid even while the store fails, because this check needs no key.
    expect(await lost.verifyAccess('x')).toBe('malformed')
  })
})

describe('forged tokens', () => {
  it('the token that the tests below modify is valid without a modification', async () => {
    expect(await tokens.verifyAccess(forge(ours, goodClaims()))).toMatchObject({ userId: 42 })
    expect(await tokens.verifyRefresh(forge({ ...ours, typ: 'rt+jwt' }, goodClaims()))).toMatchObject({
      userId: 42,
    })
  })

  const hs256 = (header: object, secret: string) => {
    const signed = `${part(header)}.${part(goodClaims())}`
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
  }
  const unsigned = (header: object) => `${part(header)}.${part(goodClaims())}.`

  it.each<[string, TokenProblem, () => string]>([
    ['alg none without a signature', 'malformed', () => unsigned({ ...ours, alg: 'none' })],
    ['alg None without a signature', 'malformed', () => unsigned({ ...ours, alg: 'None' })],
    ['our alg without a signature', 'malformed', () => unsigned(ours)],
    ['alg none with our signature', 'signature', () => forge({ ...ours, alg: 'none' }, goodClaims())],
    ['HS256 keyed with our public PEM', 'signature', () => hs256({ ...ours, alg: 'HS256' }, publicPem)],
    [
      'HS256 keyed with our public JWK',
      'signature',
      () => hs256({ ...ours, alg: 'HS256' }, JSON.stringify(key.publicJwk)),
    ],
    ['alg ES384 with an ES256 signature', 'signature', () => forge({ ...ours, alg: 'ES384' }, goodClaims())],
    ['an attacker’s key under our kid', 'signature', () => forge(ours, goodClaims(), attacker.privateKey)],
    [
      'an attacker’s key under its own kid',
      'key_unknown',
      () => forge({ ...ours, kid: attacker.kid }, goodClaims(), attacker.privateKey),
    ],
    [
      'an attacker’s key in jwk',
      'malformed',
      () => forge({ ...ours, jwk: attacker.publicJwk }, goodClaims(), attacker.privateKey),
    ],
    ['our own key in jwk', 'malformed', () => forge({ ...ours, jwk: key.publicJwk }, goodClaims())],
    ['a jku', 'malformed', () => forge({ ...ours, jku: 'https://example.com/jwks.json' }, goodClaims())],
    ['an x5u', 'malformed', () => forge({ ...ours, x5u: 'https://example.com/a.pem' }, goodClaims())],
    ['an x5c', 'malformed', () => forge({ ...ours, x5c: ['MIIB'] }, goodClaims())],
    ['an unknown crit', 'malformed', () => forge({ ...ours, crit: ['x'], x: 1 }, goodClaims())],
    ['b64 false', 'malformed', () => forge({ ...ours, crit: ['b64'], b64: false }, goodClaims())],
    ['no kid', 'malformed', () => forge({ alg: 'ES256', typ: 'at+jwt' }, goodClaims())],
    ['a kid that is a path', 'key_unknown', () => forge({ ...ours, kid: '../../dev/null' }, goodClaims())],
    ['a kid that is no string', 'malformed', () => forge({ ...ours, kid: [key.kid] }, goodClaims())],
    ['a kid of the prototype', 'key_unknown', () => forge({ ...ours, kid: '__proto__' }, goodClaims())],
    ['no typ', 'type', () => forge({ alg: 'ES256', kid: key.kid }, goodClaims())],
    ['typ JWT', 'type', () => forge({ ...ours, typ: 'JWT' }, goodClaims())],
    ['the other typ', 'type', () => forge({ ...ours, typ: 'rt+jwt' }, goodClaims())],
    ['typ as a media type', 'type', () => forge({ ...ours, typ: 'application/at+jwt' }, goodClaims())],
    ['typ in capitals', 'type', () => forge({ ...ours, typ: 'AT+JWT' }, goodClaims())],
    ['another issuer', 'issuer', () => forge(ours, { ...goodClaims(), iss: 'other' })],
    ['no issuer', 'issuer', () => forge(ours, { ...goodClaims(), iss: undefined })],
    ['a list of issuers', 'issuer', () => forge(ours, { ...goodClaims(), iss: ['peage'] })],
    ['another audience', 'audience', () => forge(ours, { ...goodClaims(), aud: 'courses' })],
    ['no audience', 'audience', () => forge(ours, { ...goodClaims(), aud: undefined })],
    ['a list with our audience', 'audience', () => forge(ours, { ...goodClaims(), aud: ['peage'] })],
    ['no exp', 'malformed', () => forge(ours, { ...goodClaims(), exp: undefined })],
    [
      'an exp that is a string',
      'malformed',
      () => forge(ours, { ...goodClaims(), exp: String(seconds() + 60) }),
    ],
    ['an exp that is null', 'malformed', () => forge(ours, { ...goodClaims(), exp: null })],
    ['an exp of this second', 'expired', () => forge(ours, { ...goodClaims(), exp: seconds() })],
    ['an nbf in the future', 'malformed', () => forge(ours, { ...goodClaims(), nbf: seconds() + 60 })],
    ['a number as sub', 'malformed', () => forge(ours, { ...goodClaims(), sub: 42 })],
    ['no sub', 'malformed', () => forge(ours, { ...goodClaims(), sub: undefined })],
    ['claims that are a list', 'malformed', () => forge(ours, [goodClaims()])],
    ['claims that are null', 'malformed', () => forge(ours, null)],
    ['claims that are not JSON', 'malformed', () => forge(ours, '{"sub":')],
    ['a header that is a list', 'malformed', () => forge([ours], goodClaims())],
    ['a header that is not JSON', 'malformed', () => forge('{', goodClaims())],
    ['sub twice', 'malformed', () => forge(ours, `{"sub":"1",${JSON.stringify(goodClaims()).slice(1)}`)],
    ['alg twice', 'malformed', () => forge(`{"alg":"none",${JSON.stringify(ours).slice(1)}`, goodClaims())],
    ['typ twice', 'malformed', () => forge(`{"typ":"rt+jwt",${JSON.stringify(ours).slice(1)}`, goodClaims())],
    ['over 4 KiB', 'malformed', () => forge(ours, { ...goodClaims(), padding: 'x'.repeat(4096) })],
    ['five parts', 'malformed', () => `${forge(ours, goodClaims())}.x.y`],
    ['a dot at the end', 'malformed', () => `${forge(ours, goodClaims())}.`],
    ['a dot at the start', 'malformed', () => `.${forge(ours, goodClaims())}`],
    ['two parts', 'malformed', () => forge(ours, goodClaims()).split('.').slice(0, 2).join('.')],
    ['white space at the end', 'malformed', () => `${forge(ours, goodClaims())}\n`],
    ['padding', 'malformed', () => `${forge(ours, goodClaims())}==`],
    ['plain base64', 'malformed', plainBase64],
    ['a signature cut short', 'signature', () => forge(ours, goodClaims()).slice(0, -6)],
    ['a signature in DER', 'signature', () => derSigned(goodClaims())],
    ['an empty string', 'malformed', () => ''],
    ['dots', 'malformed', () => '..'],
    ['half of a character', 'malformed', () => '\ud800'],
    ['a NUL', 'malformed', () => 'a\0.b.c'],
  ])('a token with %s is refused as %s', async (_, problem, make) => {
    expect(await tokens.verifyAccess(make())).toBe(problem)
  })

  it('a token with another base64url form of the same signature is invalid', async () => {
    const token = forge(ours, goodClaims())
    // The last character of 64 encoded bytes has four unused bits, so several characters encode the same bytes.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = alphabet[alphabet.indexOf(token.at(-1) as string) + 1]
    const other = token.slice(0, -1) + last
    const bytes = (each: string) => Buffer.from(each.split('.')[2] as string, 'base64url')
    expect(bytes(other).equals(bytes(token))).toBe(true)
    expect(await tokens.verifyAccess(other)).toBe('malformed')
  })

  it('a token of another type is accepted neither as access token nor as refresh token, even with a valid signature', async () => {
    for (const typ of ['JWT', 'jwt', 'dpop+jwt', 'logout+jwt']) {
      const assertion = await signed({ ...ours, typ }, { ...goodClaims(), aud: 'peage' })
      expect(await tokens.verifyAccess(assertion)).toBe('type')
      expect(await tokens.verifyRefresh(assertion)).toBe('type')
    }
  })

  it('a token with one changed character is invalid', async () => {
    const token = await tokens.issueAccess(user, endless)
    await fc.assert(
      fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom(...'AZaz09-_.'), async (at, character) => {
        fc.pre(token[at] !== character)
        const changed = token.slice(0, at) + character + token.slice(at + 1)
        expect(await tokens.verifyAccess(changed)).toBeTypeOf('string')
      }),
      { numRuns: runs(300) },
    )
  })

  it('any text is refused without an exception', async () => {
    const piece = fc.oneof(fc.base64String(), fc.string({ unit: 'binary' }), fc.json().map(part))
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(piece, { minLength: 3, maxLength: 3 }).map(parts => parts.join('.')),
      fc.json().map(json => `${part(ours)}.${part(json)}.${part('x')}`),
    )
    await fc.assert(
      fc.asyncProperty(anything, async text => {
        expect(await tokens.verifyAccess(text)).toBeTypeOf('string')
        expect(isGatewayToken(text)).toBeTypeOf('boolean')
      }),
      { numRuns: runs(1000) },
    )
  })
})

describe('the claim sub', () => {
  it('is parsed correctly for every user ID in decimal form', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), id => {
        expect(parseSubject(String(id))).toBe(id)
      }),
    )
  })

  it('is refused if it is not in the format of a user ID', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789 +-.eEx_n') })),
        text => {
          const id = parseSubject(text)
          if (id !== undefined) expect(String(id)).toBe(text)
        },
      ),
      { numRuns: runs(2000) },
    )
  })

  it.each([
    '',
    '0',
    '-1',
    '+1',
    '01',
    ' 1',
    '1 ',
    '1\n',
    '1.0',
    '1e3',
    '0x1',
    '1_0',
    '１',
    '9007199254740992',
    '99999999999999999',
    'NaN',
  ])('is refused if a signed token contains the value %j', async sub => {
    expect(parseSubject(sub)).toBeUndefined()
    expect(await tokens.verifyAccess(forge(ours, { ...goodClaims(), sub }))).toBe('malformed')
  })

  it('is accepted if it is the largest user ID', async () => {
    const sub = '9007199254740991'
    expect(await tokens.verifyAccess(forge(ours, { ...goodClaims(), sub }))).toMatchObject({
      userId: 2 ** 53 - 1,
    })
  })
})

describe('isGatewayToken', () => {
  it('recognizes access tokens and refresh tokens, even if they are invalid', async () => {
    const access = await tokens.issueAccess(user, endless)
    expect(isGatewayToken(access)).toBe(true)
    expect(isGatewayToken((await tokens.issueRefresh(1, endless)).token)).toBe(true)
    expect(isGatewayToken(`${access.split('.')[0]}.x.y`)).toBe(true)
    expect(isGatewayToken(`${part({ typ: 'Application/AT+jwt' })}.x.y`)).toBe(true)
    for (const other of [
      '',
      'x',
      '.',
      `${part({ typ: 'JWT' })}.x.y`,
      `${part({ typ: 'JWT', pad: 'ding' })}.x.y`,
      `${part({ typ: 'format+jwt' })}.x.y`,
      `${part({ typ: 'at+jwt-like' })}.x.y`,
      `${part({ typ: ['at+jwt'] })}.x.y`,
      `${part({ alg: 'ES256' })}.x.y`,
      part('null'),
    ]) {
      expect(isGatewayToken(other)).toBe(false)
    }
  })
})

function signed(header: JWTHeaderParameters, claims: JWTPayload): Promise<string> {
  return new SignJWT(claims).setProtectedHeader(header).sign(key.privateKey)
}

/** Returns a token in base64 instead of base64url. Creates new tokens until the two encodings of a token differ. */
function plainBase64(): string {
  const token = forge(ours, goodClaims())
  return /[-_]/.test(token) ? token.replaceAll('-', '+').replaceAll('_', '/') : plainBase64()
}

function derSigned(claims: object): string {
  const text = `${part(ours)}.${part(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), KeyObject.from(key.privateKey)).toString('base64url')}`
}
