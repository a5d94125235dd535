import { createHash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ProviderConfig } from '../../src/config/sections/schema.ts'
import {
  claimsOf,
  type Issuer,
  makeKey,
  openProvider,
  paths,
  sendJson,
  signToken,
  startIssuer,
  type TestKey,
} from './issuer.ts'

const [key, foreign] = (await Promise.all([makeKey('one'), makeKey('one')])) as [TestKey, TestKey]

const redirectUri = 'https://api.example.com/api/v1/auth/providers/test/callback'
const attempt = { redirectUri, state: 'the-state', nonce: 'the-nonce', codeVerifier: 'v'.repeat(43) }

let idp: Issuer
beforeEach(async () => {
  idp = await startIssuer([key])
})
afterEach(() => idp.close())

/** Makes the token endpoint send an ID token, and returns the result of a callback with a code. */
async function redeem({
  claims = {},
  header = {},
  signer = key,
  settings = {},
  callback = {},
}: {
  claims?: JWTPayload
  header?: Record<string, unknown>
  signer?: TestKey
  settings?: Partial<ProviderConfig>
  callback?: Record<string, string> | string
} = {}) {
  const { provider, clock } = openProvider(idp.config(settings))
  if (!idp.responses.has(paths.token)) {
    const all = claimsOf(idp, clock.now(), { nonce: 'the-nonce', email: 'a@example.com', ...claims })
    const idToken = await signToken(signer, all, header)
    const tokens = { access_token: 'secret-access', token_type: 'Bearer', id_token: idToken, scope: 'openid' }
    idp.responses.set(paths.token, sendJson(tokens))
  }
  const parameters =
    typeof callback === 'string' ? callback : { state: 'the-state', code: 'secret-code', ...callback }
  return provider.redeemCallback(new URLSearchParams(parameters), attempt)
}

const failing = (reason: string, message = '') =>
  expect.objectContaining({ reason, message: expect.stringContaining(message) })
const tokenRequest = () => idp.seen.find(({ path }) => path === paths.token)

describe('the authorization URL', () => {
  it('has the parameters of the code flow with PKCE', async () => {
    const { provider } = openProvider(idp.config())
    const url = await provider.authorizationUrl(attempt)
    expect(url.origin + url.pathname).toBe(`${idp.url}/authorize`)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'client',
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid email',
      state: 'the-state',
      nonce: 'the-nonce',
      code_challenge: createHash('sha256').update(attempt.codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
  })

  it('has the configured scopes and prompt, and the query parameters of the URL from discovery', async () => {
    idp.discovery.authorization_endpoint = `${idp.url}/authorize?policy=sign-in`
    const { provider } = openProvider(idp.config({ scopes: ['openid', 'profile'], prompt: 'select_account' }))
    const { searchParams } = await provider.authorizationUrl(attempt)
    expect(['scope', 'prompt', 'policy'].map(name => searchParams.get(name))).toEqual([
      'openid profile',
      'select_account',
      'sign-in',
    ])
  })
})

describe('the code of a callback', () => {
  it('is redeemed with the code verifier and the redirect URI', async () => {
    const { person, idToken } = await redeem({ claims: { email_verified: true } })
    expect(person).toEqual({ issuer: idp.url, sub: 'person', email: 'a@example.com' })
    expect(idToken.hash).toMatch(/^[0-9a-f]{64}$/)
    expect(Object.fromEntries(tokenRequest()?.body ?? [])).toEqual({
      grant_type: 'authorization_code',
      code: 'secret-code',
      code_verifier: attempt.codeVerifier,
      redirect_uri: redirectUri,
      client_id: 'client',
      client_secret: 'secret',
    })
    expect(tokenRequest()?.headers).not.toHaveProperty('authorization')
    expect(idp.count(paths.userInfo)).toBe(0)
  })

  it('is redeemed with client_secret_basic, if discovery does not list client_secret_post', async () => {
    delete idp.discovery.token_endpoint_auth_methods_supported
    await redeem()
    expect(tokenRequest()?.headers.authorization).toBe(`Basic ${btoa('client:secret')}`)
    expect(tokenRequest()?.body.has('client_secret')).toBe(false)
  })

  it('is redeemed without authentication by a public client', async () => {
    await redeem({ settings: { client_secret: '' } })
    expect(tokenRequest()?.headers).not.toHaveProperty('authorization')
    expect(tokenRequest()?.body.get('client_id')).toBe('client')
    expect(tokenRequest()?.body.has('client_secret')).toBe(false)
  })

  it('is redeemed at a provider on https', async () => {
    await idp.close()
    idp = await startIssuer([key], { tls: true })
    expect((await redeem()).person.sub).toBe('person')
  })
})

describe('a callback', () => {
  it('with the error access_denied is reported as access_denied', async () => {
    await expect(redeem({ callback: { error: 'access_denied' } })).rejects.toEqual(failing('access_denied'))
  })

  it('with another error name causes provider_error, and the message contains the name', async () => {
    await expect(redeem({ callback: { error: 'invalid_scope' } })).rejects.toEqual(
      failing('provider_error', 'the provider responded with "invalid_scope"'),
    )
  })

  it('with a text that is no valid error name causes provider_error, and the message does not contain the text', async () => {
    await expect(redeem({ callback: { error: 'ada@example.com' } })).rejects.toEqual(
      failing('provider_error', 'the provider responded with an unknown error'),
    )
  })

  it.each([
    ['has another state', { state: 'other' }],
    ['has access_denied and another state', { state: 'other', error: 'access_denied' }],
    ['has another issuer', { iss: 'https://other.example.com' }],
    ['has access_denied and another issuer', { iss: 'https://other.example.com', error: 'access_denied' }],
    ['has no code', 'state=the-state'],
    ['has no state', 'code=secret-code'],
    ['has two codes', 'state=the-state&code=a&code=b'],
    ['has two states', 'state=the-state&state=the-state&code=a'],
    ['has two issuers', 'state=the-state&code=a&iss=a&iss=a'],
    ['has an ID token', { id_token: 'a.b.c' }],
    ['has a JWT response', { response: 'a.b.c' }],
  ])('causes provider_error if it %s, and the code is not sent', async (_, callback) => {
    await expect(redeem({ callback })).rejects.toEqual(failing('provider_error'))
    expect(idp.count(paths.token)).toBe(0)
  })

  it('with the issuer of the provider is accepted', async () => {
    await redeem({ callback: { iss: idp.url } })
  })

  it('without an issuer causes provider_error if discovery announces that callbacks contain the issuer', async () => {
    idp.discovery.authorization_response_iss_parameter_supported = true
    await expect(redeem()).rejects.toEqual(failing('provider_error'))
    await redeem({ callback: { iss: idp.url } })
  })
})

describe('a token endpoint', () => {
  it.each([400, 401, 403, 429])('causes provider_error if it refuses the code with %i', async status => {
    idp.responses.set(paths.token, sendJson({ error: 'invalid_grant', error_description: 'secret' }, status))
    const error = await redeem().catch((failure: Error) => failure)
    expect(error).toEqual(
      failing(
        'provider_error',
        `${idp.url}/token: status ${status}, error "invalid_grant"`.replace(', ', '; '),
      ),
    )
    expect((error as Error).message).not.toContain('secret')
  })

  it('causes provider_error if it refuses the client with a WWW-Authenticate challenge', async () => {
    idp.responses.set(paths.token, (_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="secret"' }).end(),
    )
    await expect(redeem()).rejects.toEqual(failing('provider_error', 'status 401'))
  })

  it.each([
    ['responds with 503', sendJson({ error: 'invalid_grant' }, 503)],
    [
      'redirects',
      (_: unknown, response: { writeHead(...all: unknown[]): { end(): void } }) =>
        response.writeHead(307, { location: '/keys' }).end(),
    ],
    ['closes the connection', (request: { socket: { destroy(): void } }) => void request.socket.destroy()],
    [
      'sends a page',
      (_: unknown, response: { end(text: string): void }) => response.end('<html>secret</html>'),
    ],
    ['sends 10 MiB', sendJson({ access_token: 'a'.repeat(10 * 1024 * 1024) })],
  ])('causes provider_unavailable if it %s', async (_, respond) => {
    idp.responses.set(paths.token, respond as never)
    const error = await redeem().catch((failure: Error) => failure)
    expect(error).toEqual(failing('provider_unavailable', `POST ${idp.url}/token`))
    expect((error as Error).message).not.toContain('secret')
  })

  it.each([
    ['no ID token', { access_token: 'a', token_type: 'Bearer' }],
    ['a malformed ID token', { access_token: 'a', token_type: 'Bearer', id_token: 'a.b.c' }],
    ['no access token', { token_type: 'Bearer' }],
  ])('causes id_token_invalid if it sends %s', async (_, tokens) => {
    idp.responses.set(paths.token, sendJson(tokens))
    await expect(redeem()).rejects.toEqual(failing('id_token_invalid'))
  })
})

describe('the ID token of a callback is refused if', () => {
  it.each<[string, Parameters<typeof redeem>[0]]>([
    ['a different provider signed it', { signer: foreign }],
    ['it has another issuer', { claims: { iss: 'https://other.example.com' } }],
    ['it has another audience', { claims: { aud: 'other' } }],
    ['it has a further audience', { claims: { aud: ['client', 'other'], azp: 'client' } }],
    ['it has another authorized party', { claims: { azp: 'other' } }],
    ['it is an access token', { claims: { scope: 'openid' } }],
    ['it is an access token by its header', { header: { typ: 'at+jwt' } }],
    ['it has another nonce', { claims: { nonce: 'other' } }],
    [
      'it has the SHA-256 of the nonce',
      { claims: { nonce: createHash('sha256').update('the-nonce').digest('hex') } },
    ],
    ['it has no nonce', { claims: { nonce: undefined } }],
    ['it is too old', { claims: { iat: Math.floor(Date.now() / 1_000) - 700 } }],
    ['it has expired', { claims: { exp: Math.floor(Date.now() / 1_000) - 10 } }],
  ])('%s', async (_, options) => {
    await expect(redeem(options)).rejects.toEqual(failing('id_token_invalid'))
  })
})

describe('the email of a callback', () => {
  const withoutEmail = { email: undefined }

  it('is read from UserInfo if the ID token has no email', async () => {
    idp.responses.set(
      paths.userInfo,
      sendJson({ sub: 'person', email: 'U@example.com', email_verified: true }),
    )
    expect((await redeem({ claims: withoutEmail })).person.email).toBe('u@example.com')
    expect(idp.seen.find(({ path }) => path === paths.userInfo)?.headers.authorization).toBe(
      'Bearer secret-access',
    )
  })

  it('does not count as verified if the email is from UserInfo, and email_verified is only in the ID token', async () => {
    idp.responses.set(paths.userInfo, sendJson({ sub: 'person', email: 'u@example.com' }))
    const { person } = await redeem({ claims: { ...withoutEmail, email_verified: true } })
    expect(person.email).toBeUndefined()
  })

  it('is missing if the ID token has no email and the provider has no UserInfo endpoint', async () => {
    delete idp.discovery.userinfo_endpoint
    expect((await redeem({ claims: withoutEmail })).person).toEqual({
      issuer: idp.url,
      sub: 'person',
      email: undefined,
    })
  })

  it.each([{ sub: 'other', email: 'a@example.com', email_verified: true }, { email: 'a@example.com' }])(
    'causes id_token_invalid if it is read from UserInfo and UserInfo sends %j',
    async claims => {
      idp.responses.set(paths.userInfo, sendJson(claims))
      await expect(redeem({ claims: withoutEmail })).rejects.toEqual(failing('id_token_invalid', idp.url))
    },
  )

  it.each<[string, number]>([
    ['provider_error', 403],
    ['provider_unavailable', 500],
  ])('causes %s, if UserInfo responds with %i', async (reason, status) => {
    idp.responses.set(paths.userInfo, sendJson({}, status))
    await expect(redeem({ claims: withoutEmail })).rejects.toEqual(failing(reason, `status ${status}`))
  })

  it('is not read if UserInfo sends a JWT instead of JSON', async () => {
    const jwt = await signToken(foreign, { sub: 'person', email: 'a@example.com', email_verified: true })
    idp.discovery.userinfo_signing_alg_values_supported = ['ES256']
    idp.responses.set(paths.userInfo, (_, response) =>
      response.writeHead(200, { 'content-type': 'application/jwt' }).end(jwt),
    )
    await expect(redeem({ claims: withoutEmail })).rejects.toEqual(
      failing('provider_unavailable', 'not a JSON object'),
    )
  })
})

describe('an access token that is no valid header value', () => {
  it('does not appear in the error message', async () => {
    const idToken = await signToken(key, claimsOf(idp, Date.now(), { nonce: 'the-nonce' }))
    idp.responses.set(
      paths.token,
      sendJson({ access_token: 'secret\nsecret', token_type: 'Bearer', id_token: idToken }),
    )
    const error = await redeem().catch((failure: Error) => failure)
    expect(error).toEqual(failing('provider_error', 'the response is malformed'))
  })
})
