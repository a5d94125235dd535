// Starts a real OpenID Connect provider (the package oidc-provider) on a loopback port, with its own login page.
import { createHash, generateKeyPair, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { Context, Provider } from 'oidc-provider'

export interface ProviderClient {
  readonly id: string
  /** If omitted, the client is a public client. */
  readonly secret?: string
  readonly redirectUris: readonly string[]
}

/** The claims of a user. Other claims are allowed too, for example `xms_edov`. */
export interface ProviderUser {
  sub: string
  email?: string
  email_verified?: boolean | string
  [claim: string]: unknown
}

/** The users by the name that they type into the login page. */
export type ProviderUsers = Record<string, ProviderUser>

export interface OidcProvider {
  readonly issuer: string
  /** The method and path of each request. */
  readonly received: string[]
  /** If set, handles the requests instead of the provider. */
  answer: RequestListener | undefined
  /**
   * Signs in at the login page like a new browser. Stops before the redirect to the client of the provider.
   * @param authorizationUrl the URL to which the client has redirected the browser
   * @param login the name of a user; `undefined` cancels the sign-in
   * @returns the client's URL to which the provider redirects the browser, with `code`, `state` and `iss`
   */
  signIn(authorizationUrl: string, login: string | undefined): Promise<URL>
  /**
   * Gets an ID token as an app does: by the authorization code flow with PKCE.
   * @param request `clientId`: a public client; `nonce`: the nonce in the ID token; if omitted, the token has none
   */
  tokensForApp(request: {
    clientId: string
    login: string
    nonce?: string
  }): Promise<{ idToken: string; accessToken: string }>
  /** Replaces the signing key. Sessions and codes remain valid. */
  rotateKeys(): Promise<void>
  close(): Promise<void>
}

/** The password of every user at the login page. */
export const providerPassword = 'password at the provider'

/**
 * Starts a provider with these options:
 * - `users`: a test may change them at any time, but may only use claim names that a user has at the start.
 * - `emailIn`: the place of the email. This is the ID token, or only the response of UserInfo.
 * - `clientAuthMethods`: the client authentication methods in the discovery document. Clients with a secret use the
 *   first method.
 */
export async function startOidcProvider({
  clients,
  users,
  emailIn = 'id_token',
  clientAuthMethods = ['client_secret_post', 'client_secret_basic'],
}: {
  clients: readonly ProviderClient[]
  users: ProviderUsers
  emailIn?: 'id_token' | 'userinfo'
  clientAuthMethods?: readonly ('client_secret_post' | 'client_secret_basic')[]
}): Promise<OidcProvider> {
  const { Provider } = await loadQuietly()
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', issuer)
    provider.received.push(`${request.method} ${pathname}`)
    if (provider.answer !== undefined) provider.answer(request, response)
    else if (pathname.startsWith('/sign-in/')) void signInPage(current, users, request, response)
    else current.callback()(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const claims = Object.values(users).flatMap(user => Object.keys(user).filter(name => name !== 'sub'))
  const configuration = {
    adapter: memoryAdapter(),
    claims: { openid: ['sub'], email: [...new Set(['email', 'email_verified', ...claims])] },
    clientAuthMethods: [...clientAuthMethods, 'none'],
    clients: clients.map(({ id, secret, redirectUris }) => ({
      client_id: id,
      ...(secret === undefined ? {} : { client_secret: secret }),
      token_endpoint_auth_method: secret === undefined ? 'none' : clientAuthMethods[0],
      redirect_uris: redirectUris,
    })),
    conformIdTokenClaims: emailIn === 'userinfo',
    cookies: { keys: [randomUUID()] },
    features: { devInteractions: { enabled: false } },
    findAccount(_: Context, sub: string) {
      const user = Object.values(users).find(each => each.sub === sub)
      return user && { accountId: sub, claims: () => user }
    },
    interactions: { url: (_: Context, { uid }: { uid: string }) => `/sign-in/${uid}` },
    loadExistingGrant: grantAll,
    renderError(context: Context, { error, error_description }: Record<string, string>) {
      context.body = `${error}: ${error_description}`
    },
    ttl: {
      AccessToken: 3600,
      AuthorizationCode: 60,
      Grant: 3600,
      IdToken: 3600,
      Interaction: 3600,
      Session: 3600,
    },
  }
  const create = async () => new Provider(issuer, { ...configuration, jwks: { keys: [await privateJwk()] } })
  let current = await create()

  const provider: OidcProvider = {
    issuer,
    received: [],
    answer: undefined,
    signIn: (authorizationUrl, login) => signIn(issuer, authorizationUrl, login),
    async tokensForApp({ clientId, login, nonce }) {
      const redirectUri = clients.find(({ id }) => id === clientId)?.redirectUris[0] ?? ''
      const verifier = randomBytes(32).toString('base64url')
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: 'openid email',
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...(nonce === undefined ? {} : { nonce }),
      })
      const returned = await signIn(issuer, `${issuer}/auth?${query}`, login)
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          client_id: clientId,
          redirect_uri: redirectUri,
          code: returned.searchParams.get('code') ?? '',
          code_verifier: verifier,
        }),
      })
      const body = (await response.json()) as Record<string, string>
      if (!response.ok) throw new Error(`${returned}: ${JSON.stringify(body)}`)
      return { idToken: String(body.id_token), accessToken: String(body.access_token) }
    },
    async rotateKeys() {
      current = await create()
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return provider
}

/** Imports the package without the warning that it prints on Node 20. */
async function loadQuietly() {
  const { warn } = console
  console.warn = () => {}
  try {
    return await import('oidc-provider')
  } finally {
    console.warn = warn
  }
}

async function privateJwk() {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' }
}

/** Grants every client all scopes, so that users see no consent page. */
async function grantAll({ oidc: { provider, client, session } }: Context) {
  const id = session.grantIdFor(client.clientId)
  const existing = id === undefined ? undefined : await provider.Grant.find(id)
  if (existing !== undefined) return existing
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
  grant.addOIDCScope('openid email')
  await grant.save()
  return grant
}

/** Serves the login page, and handles its form. */
async function signInPage(
  provider: Provider,
  users: ProviderUsers,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const form = new URLSearchParams(request.method === 'POST' ? await text(request) : '')
  const user = users[form.get('login') ?? '']
  const isRight = user !== undefined && form.get('password') === providerPassword
  if (form.has('cancel') || isRight) {
    const result = isRight ? { login: { accountId: user.sub } } : { error: 'access_denied' }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
    return
  }
  response.setHeader('content-type', 'text/html; charset=utf-8')
  response.end(`<!doctype html>
<html lang="en">
<link rel="icon" href="data:,">
<title>Sign in at the provider</title>
<h1>Sign in at the provider</h1>
<form method="post">
  <input name="login" aria-label="User name">
  <input name="password" type="password" aria-label="Password">
  <button>Sign in</button>
  <button name="cancel" value="1">Cancel</button>
</form>
</html>`)
}

/** Follows the redirects of the provider with a new cookie jar, and fills in the login page. */
async function signIn(issuer: string, authorizationUrl: string, login: string | undefined): Promise<URL> {
  const cookies = new Map<string, string>()
  const form = login === undefined ? { cancel: '1' } : { login, password: providerPassword }
  let url = new URL(authorizationUrl)
  let body: URLSearchParams | undefined
  for (let requests = 0; requests < 10; requests++) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(body === undefined ? {} : { method: 'POST', body }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) {
      const page = await response.text()
      if (body !== undefined || !page.includes('<form')) throw new Error(`${url}: ${response.status} ${page}`)
      body = new URLSearchParams(form)
      continue
    }
    body = undefined
    url = new URL(location, url)
    if (url.origin !== issuer) return url
  }
  throw new Error(`${url}: too many redirects`)
}

/** Stores everything in memory. The providers before and after `rotateKeys` share the storage. */
function memoryAdapter() {
  type Stored = Record<string, unknown> & { uid?: string; grantId?: string; consumed?: number }
  const rows = new Map<string, Stored>()
  return class {
    readonly #model: string
    constructor(model: string) {
      this.#model = model
    }
    async upsert(id: string, row: Stored) {
      rows.set(`${this.#model}:${id}`, row)
    }
    async find(id: string) {
      return rows.get(`${this.#model}:${id}`)
    }
    async findByUid(uid: string) {
      return [...rows].find(([key, row]) => key.startsWith(`${this.#model}:`) && row.uid === uid)?.[1]
    }
    async consume(id: string) {
      const row = rows.get(`${this.#model}:${id}`)
      if (row !== undefined) row.consumed = Math.floor(Date.now() / 1000)
    }
    async destroy(id: string) {
      rows.delete(`${this.#model}:${id}`)
    }
    async revokeByGrantId(grantId: string) {
      for (const [key, row] of rows) if (row.grantId === grantId) rows.delete(key)
    }
  }
}
