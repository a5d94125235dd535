import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discoveryUrl, readDiscovery } from '../../src/providers/discovery.ts'
import { type Issuer, makeKey, openProvider, paths, sendJson, startIssuer } from './issuer.ts'

const issuer = 'https://idp.example.com'
const document = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
}
const attempt = { redirectUri: 'https://api.example.com/callback', state: 's', nonce: 'n', codeVerifier: 'v' }

describe('the address of a discovery document', () => {
  it.each([
    [issuer, `${issuer}/.well-known/openid-configuration`],
    [`${issuer}/`, `${issuer}/.well-known/openid-configuration`],
    [`${issuer}/realms/one`, `${issuer}/realms/one/.well-known/openid-configuration`],
    [`${issuer}/realms/one/`, `${issuer}/realms/one/.well-known/openid-configuration`],
  ])('for the issuer %s is %s', (text, url) => {
    expect(discoveryUrl(text)).toBe(url)
  })
})

describe('a discovery document', () => {
  it('gets the default values of OpenID Connect Discovery for its missing members', () => {
    expect(readDiscovery(document, issuer)).toEqual({
      authorizationEndpoint: `${issuer}/authorize`,
      tokenEndpoint: `${issuer}/token`,
      userInfoEndpoint: undefined,
      jwksUri: `${issuer}/keys`,
      algorithms: ['RS256'],
      secretMethod: 'client_secret_basic',
      sendsIssuer: false,
    })
  })

  it('can contain null for optional members', () => {
    const names = [
      'userinfo_endpoint',
      'id_token_signing_alg_values_supported',
      'token_endpoint_auth_methods_supported',
    ]
    const nulls = Object.fromEntries(names.map(name => [name, null]))
    expect(readDiscovery({ ...document, ...nulls }, issuer)).toEqual(readDiscovery(document, issuer))
  })

  it.each([
    [['client_secret_basic', 'client_secret_post'], 'client_secret_post'],
    [['client_secret_basic'], 'client_secret_basic'],
    [['private_key_jwt'], 'client_secret_basic'],
  ])('with the authentication methods %j makes the gateway use %s', (methods, secretMethod) => {
    const full = { ...document, token_endpoint_auth_methods_supported: methods }
    expect(readDiscovery(full, issuer)).toMatchObject({ secretMethod })
  })

  it('can enable only asymmetric algorithms; other algorithms in its list are ignored', () => {
    const listed = ['none', 'HS256', 'ES256', 'HS512', 'RS256', 'none', 7, null, 'EdDSA', 'unknown']
    expect(
      readDiscovery({ ...document, id_token_signing_alg_values_supported: listed }, issuer),
    ).toHaveProperty('algorithms', ['RS256', 'ES256', 'EdDSA'])
  })

  it.each([
    ['a slash at the end', `${issuer}/`],
    ['no slash at the end', issuer, `${issuer}/`],
    ['another letter case', 'https://IDP.example.com'],
    ['another tenant', `${issuer}/other`],
    ['the placeholder of Microsoft', 'https://login.microsoftonline.com/{tenantid}/v2.0'],
    ['a list', [issuer]],
    ['no issuer', undefined],
  ])('is refused if its issuer differs from the configured issuer: %s', (_, text, configured = issuer) => {
    expect(readDiscovery({ ...document, issuer: text }, configured as string)).toEqual([
      expect.stringMatching(/^issuer is .*, but ".*" is configured$/),
    ])
  })

  it.each([
    'http://idp.example.com/x',
    'http://127.0.0.1/x',
    'http://localhost:8080/x',
    'http://[::1]/x',
    'javascript:alert(1)',
    'data:text/html,x',
    '/x',
    '',
    7,
    false,
  ])('is refused if it contains the endpoint URL %j and its issuer is on https', url => {
    for (const name of ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri']) {
      expect(readDiscovery({ ...document, [name]: url }, issuer)).toEqual([
        `${name} is ${JSON.stringify(url)}, but it must be an https:// address`,
      ])
    }
  })

  it.each([
    ['http://127.0.0.1:9/x', true],
    ['http://localhost/x', true],
    ['http://[::1]/x', true],
    ['https://idp.example.com/x', true],
    ['http://idp.example.com/x', false],
    ['http://10.0.0.1/x', false],
    ['http://127.0.0.1.example.com/x', false],
  ])('with an issuer on loopback and the endpoint URL %s is accepted: %s', (url, isAllowed) => {
    const local = 'http://127.0.0.1:8080'
    const full = { ...document, issuer: local, token_endpoint: url }
    expect(Array.isArray(readDiscovery(full, local))).toBe(!isAllowed)
  })

  it('is refused with one message for each problem', () => {
    const wrong = {
      id_token_signing_alg_values_supported: ['HS256'],
      token_endpoint_auth_methods_supported: 'x',
    }
    expect(readDiscovery(wrong, issuer)).toEqual([
      `issuer is undefined, but "${issuer}" is configured`,
      'id_token_signing_alg_values_supported contains no asymmetric algorithm',
      'token_endpoint_auth_methods_supported is "x", but it must be a list',
      'authorization_endpoint is undefined, but it must be an https:// address',
      'token_endpoint is undefined, but it must be an https:// address',
      'jwks_uri is undefined, but it must be an https:// address',
    ])
  })

  it('is quoted in messages as short ASCII text', () => {
    const [problem = ''] = readDiscovery(
      { ...document, issuer: `\n\u202e${'x'.repeat(5_000)}` },
      issuer,
    ) as string[]
    expect(problem).toMatch(/^[\x20-\x7e…]+$/)
    expect(problem.length).toBeLessThan(300)
  })
})

describe('a provider', () => {
  let idp: Issuer
  beforeEach(async () => {
    idp = await startIssuer([await makeKey('one')], { tls: true, path: '/realms/one' })
  })
  afterEach(() => idp.close())

  it('on https is unavailable if its discovery contains an endpoint on loopback, and that endpoint gets no request', async () => {
    const local = await startIssuer([])
    for (const name of ['jwks_uri', 'token_endpoint']) {
      const previous = idp.discovery[name]
      idp.discovery[name] = local.url + paths.keys
      const { provider, outcomes } = openProvider(idp.config())
      await expect(provider.authorizationUrl(attempt)).rejects.toMatchObject({
        reason: 'provider_unavailable',
        message: expect.stringContaining(name),
      })
      expect(outcomes).toEqual(['invalid'])
      idp.discovery[name] = previous
    }
    expect(local.seen).toEqual([])
    await local.close()
  })

  it('passes its test if nothing is wrong, and the test uses no cached documents', async () => {
    const { provider, outcomes } = openProvider(idp.config())
    await provider.authorizationUrl(attempt)
    expect(await provider.test()).toEqual([])
    expect(await provider.test()).toEqual([])
    expect(outcomes).toEqual(['ok', 'ok', 'ok', 'ok', 'ok'])
    expect([idp.count(paths.discovery), idp.count(paths.keys)]).toEqual([3, 2])
  })

  it('fails its test with one message for each problem in its discovery document', async () => {
    idp.discovery.issuer = 'https://other.example.com'
    delete idp.discovery.token_endpoint
    const where = `GET ${idp.url}${paths.discovery}`
    expect(await openProvider(idp.config()).provider.test()).toEqual([
      `${where}: issuer is "https://other.example.com", but "${idp.url}" is configured`,
      `${where}: token_endpoint is undefined, but it must be an https:// address`,
    ])
  })

  it.each([
    [{ keys: [] }, 'it contains no keys'],
    [{}, 'it contains no keys'],
    [{ keys: ['text'] }, 'it is not a valid JWK Set'],
  ])('fails its test if its key set is %j', async (keys, problem) => {
    idp.responses.set(paths.keys, sendJson(keys))
    const { provider, outcomes } = openProvider(idp.config())
    expect(await provider.test()).toEqual([`GET ${idp.url}${paths.keys}: ${problem}`])
    expect(outcomes).toEqual(['ok', 'invalid'])
  })

  it('fails its test if it accepts no connections', async () => {
    await idp.close()
    expect(await openProvider(idp.config()).provider.test()).toEqual([
      `GET ${idp.url}${paths.discovery}: no valid response (ECONNREFUSED)`,
    ])
    idp = await startIssuer([])
  })
})
