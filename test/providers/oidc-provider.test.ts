// Tests the identity provider that other tests use (test/support/oidc-provider.ts): its login, its ID tokens and its
// keys.
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OidcProvider, startOidcProvider } from '../support/oidc-provider.ts'

const redirectUri = 'http://127.0.0.1:1/callback'
const ada = { sub: 'ada-1', email: 'ada@example.com', email_verified: true, xms_edov: '1' }
const clients = [
  { id: 'gateway', secret: 'a-secret-of-the-gateway', redirectUris: [redirectUri] },
  { id: 'app', redirectUris: ['http://127.0.0.1:1/app'] },
]

describe.each(['id_token', 'userinfo'] as const)(
  'the provider of the tests, with the email in %s',
  emailIn => {
    let provider: OidcProvider
    beforeAll(async () => {
      provider = await startOidcProvider({ clients, users: { ada }, emailIn })
    })
    afterAll(() => provider?.close())

    const verified = async (idToken: string, audience: string) => {
      const keys = createRemoteJWKSet(new URL(`${provider.issuer}/jwks`))
      return (await jwtVerify(idToken, keys, { issuer: provider.issuer, audience })).payload
    }
    const userInfo = async (accessToken: string) => {
      const headers = { authorization: `Bearer ${accessToken}` }
      return (await fetch(`${provider.issuer}/me`, { headers })).json()
    }
    const authorizationUrl = () =>
      `${provider.issuer}/auth?${new URLSearchParams({
        response_type: 'code',
        client_id: 'gateway',
        redirect_uri: redirectUri,
        scope: 'openid email',
        state: 'a-state',
      })}`

    it('signs a user in over HTTP, and gives a confidential client a signed ID token for the code', async () => {
      const returned = await provider.signIn(authorizationUrl(), 'ada')
      expect(returned.origin + returned.pathname).toBe(redirectUri)
      const { code = '', ...others } = Object.fromEntries(returned.searchParams)
      expect(others).toEqual({ state: 'a-state', iss: provider.issuer })
      const response = await fetch(`${provider.issuer}/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code,
          redirect_uri: redirectUri,
          client_id: 'gateway',
          client_secret: 'a-secret-of-the-gateway',
        }),
      })
      const { id_token, access_token } = (await response.json()) as Record<string, string>
      const payload = await verified(String(id_token), 'gateway')
      expect(payload.sub).toBe(ada.sub)
      expect(payload.email).toBe(emailIn === 'id_token' ? ada.email : undefined)
      expect(await userInfo(String(access_token))).toEqual(ada)
    })

    it('returns access_denied if the user cancels', async () => {
      const { searchParams } = await provider.signIn(authorizationUrl(), undefined)
      expect([searchParams.get('error'), searchParams.get('state')]).toEqual(['access_denied', 'a-state'])
    })

    it('refuses an unknown user', async () => {
      await expect(provider.signIn(authorizationUrl(), 'eve')).rejects.toThrow('Sign in at the provider')
    })

    it('gives an app an ID token with the nonce of the app, and signs with a new key after a key rotation', async () => {
      const old = await provider.tokensForApp({ clientId: 'app', login: 'ada', nonce: 'a-nonce' })
      expect(await verified(old.idToken, 'app')).toMatchObject({ sub: ada.sub, nonce: 'a-nonce' })
      await provider.rotateKeys()
      const { idToken, accessToken } = await provider.tokensForApp({ clientId: 'app', login: 'ada' })
      expect(await verified(idToken, 'app')).not.toHaveProperty('nonce')
      expect(await userInfo(accessToken)).toEqual(ada)
      expect(decodeProtectedHeader(idToken).kid).not.toBe(decodeProtectedHeader(old.idToken).kid)
      await expect(verified(old.idToken, 'app')).rejects.toThrow('no applicable key')
    })

    it('lets a test read the received requests and replace the responses', async () => {
      provider.received.length = 0
      provider.answer = (_, response) => response.writeHead(503).end()
      expect((await fetch(`${provider.issuer}/.well-known/openid-configuration`)).status).toBe(503)
      provider.answer = undefined
      expect((await fetch(`${provider.issuer}/.well-known/openid-configuration`)).status).toBe(200)
      expect(provider.received).toEqual(Array(2).fill('GET /.well-known/openid-configuration'))
    })
  },
)
