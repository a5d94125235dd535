// Starts gateways with two identity providers, and signs users in over HTTP like a browser and like an app.
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type Answer, call } from './client.ts'
import { type Claims, type CodeIssuer, startCodeIssuer } from './code-issuer.ts'
import { type Stores, startGateway, type TestGateway } from './gateway.ts'
import { mailSection } from './mailed.ts'
import type { Setup } from './setups.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export const publicUrl = 'http://localhost:8080'
export const returnUrl = 'http://localhost:3000/signed-in'
/** Returns the path of a gateway endpoint for an identity provider. */
export const pathOf = (name: string, endpoint: string) => `/api/v1/auth/providers/${name}/${endpoint}`

export const withoutLimits =
  'rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0, external: 0 }'

export interface SignInStage {
  alpha: CodeIssuer
  beta: CodeIssuer
  upstream: Upstream
  stores: Stores
  gateway: TestGateway
  /** Another replica if the set-up has Postgres, otherwise the same gateway. */
  other: TestGateway
  /** Moves the clocks of all replicas forward by `ms` milliseconds, until the end of the test. */
  move(ms: number): void
}

export interface StageOptions {
  /** Further members of the provider `alpha`, as text that starts with a comma. */
  alpha?: string
  /** Further members of the `auth` section, as text that starts with a comma. */
  auth?: string
  /** Further members of the `server` section, as text that starts with a comma. By default, only `public_url`. */
  server?: string
  returnUrls?: readonly string[]
  rateLimits?: string
  replicas?: number
}

/** Returns an object whose fields are set before the first test. */
export function signInStage(setup: Setup, options: StageOptions = {}): SignInStage {
  let offsetMs = 0
  const at = {
    move(ms: number) {
      offsetMs += ms
    },
  } as SignInStage
  const replicas: TestGateway[] = []
  beforeAll(async () => {
    at.stores = await setup.open()
    at.upstream = await startUpstream()
    at.alpha = await startCodeIssuer()
    at.beta = await startCodeIssuer()
    const count = at.stores.postgres === '' ? 1 : (options.replicas ?? 2)
    for (let i = 0; i < count; i += 1) replicas.push(await startReplica(at, options))
    // Providers use the real time, so the clocks of the replicas must run too.
    for (const { clock } of replicas) clock.now = () => Date.now() + offsetMs
    at.gateway = replicas[0] ?? expect.unreachable()
    at.other = replicas.at(-1) ?? at.gateway
  })
  beforeEach(() => {
    offsetMs = 0
    at.upstream.received.length = 0
  })
  afterAll(async () => {
    await Promise.all(replicas.map(replica => replica.stop()))
    await at.alpha?.close()
    await at.beta?.close()
    await at.upstream?.close()
    if (at.stores !== undefined) await setup.drop(at.stores)
  })
  return at
}

function startReplica(at: SignInStage, options: StageOptions): Promise<TestGateway> {
  const { alpha = '', auth = '', server, returnUrls = [returnUrl], rateLimits = withoutLimits } = options
  const client = 'client_id: client, client_secret: secret'
  const pages = returnUrls.map(url => `'${url}'`).join(', ')
  return startGateway(
    `${mailSection()}account: { deletion: true }
upstreams: { echo: { targets: ['${at.upstream.url}'] } }
routes:
  - { path: /me, upstream: echo }
  - { path: /open, upstream: echo, auth: none }
`,
    at.stores,
    {
      server: server ?? `, public_url: '${publicUrl}'`,
      rateLimits,
      auth: `, return_urls: [${pages}], providers: {
        alpha: { label: Alpha, issuer: '${at.alpha.url}', ${client}${alpha} },
        beta: { issuer: '${at.beta.url}', ${client} } }${auth}`,
    },
  )
}

/** A minimal browser, which only stores and sends cookies. */
export class CookieBrowser {
  readonly cookies = new Map<string, string>()

  async get(gateway: { readonly url: string }, path: string): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await call(gateway.url, 'GET', path, { headers: cookie === '' ? {} : { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }
}

/** The PKCE verifier of a page (RFC 7636), and the parameters that the page sends to the endpoint `start`. */
export interface Page {
  readonly verifier: string
  readonly parameters: {
    readonly return_url: string
    readonly state: string
    readonly code_challenge: string
  }
}

export function newPage(changes: Partial<Page['parameters']> = {}): Page {
  const verifier = randomBytes(32).toString('base64url')
  const code_challenge = createHash('sha256').update(verifier).digest('base64url')
  const state = randomBytes(8).toString('base64url')
  return { verifier, parameters: { return_url: returnUrl, state, code_challenge, ...changes } }
}

export function startPath({ parameters }: Page, name = 'alpha'): string {
  return `${pathOf(name, 'start')}?${new URLSearchParams(parameters)}`
}

/** Expects a 303 without a body, and returns its `Location`. */
export function locationOf(answer: Answer): URL {
  expect([answer.status, answer.text]).toEqual([303, ''])
  return new URL(String(answer.headers.get('location')))
}

/** Opens the endpoint `start`. @returns `location`: the URL to which the gateway redirects the browser */
export async function begin(
  gateway: { readonly url: string },
  { browser = new CookieBrowser(), page = newPage(), name = 'alpha' } = {},
): Promise<{ browser: CookieBrowser; page: Page; location: string }> {
  const { href } = locationOf(await browser.get(gateway, startPath(page, name)))
  return { browser, page, location: href }
}

/** Signs a person in with a new browser. @returns the code that the page receives, and the page's PKCE verifier */
export async function codeFor(
  { alpha, gateway }: Pick<SignInStage, 'alpha' | 'gateway'>,
  claims: Claims,
): Promise<{ code: string; code_verifier: string }> {
  const { browser, page, location } = await begin(gateway)
  const { pathname, search } = alpha.consent(location, claims)
  const { searchParams } = locationOf(await browser.get(gateway, pathname + search))
  const { code, ...others } = Object.fromEntries(searchParams)
  expect(others).toEqual({ state: page.parameters.state })
  return { code: String(code), code_verifier: page.verifier }
}

export function exchange(gateway: { readonly url: string }, body: object): Promise<Answer> {
  return call(gateway.url, 'POST', '/api/v1/auth/exchange', { body })
}

export function sendIdToken(
  gateway: { readonly url: string },
  body: object,
  name = 'alpha',
): Promise<Answer> {
  return call(gateway.url, 'POST', pathOf(name, 'token'), { body })
}

let made = 0

/** Returns the claims of a new person. */
export function newPerson(claims: Claims = {}): Claims & { sub: string; email: string } {
  made += 1
  const name = `person${made}.${process.pid}`
  return { sub: `sub-of-${name}`, email: `${name}@example.com`, email_verified: true, ...claims }
}

/** Sends a request with the access token in `answer`, and returns the user ID that the upstream receives. */
export async function userOf({ gateway, upstream }: SignInStage, answer: Answer): Promise<number> {
  const { status } = await call(gateway.url, 'GET', '/me', { token: String(answer.body.access_token) })
  expect([answer.text, status]).toEqual([answer.text, 200])
  return Number(upstream.received.at(-1)?.headers['x-user-id'])
}

export interface StoredUser {
  readonly id: number
  readonly password_hash: string
  readonly isVerified: boolean
}

export function usersWith(gateway: TestGateway, email: string): Promise<StoredUser[]> {
  return gateway.sql<StoredUser>(
    `select id, password_hash, email_verified_at is not null as "isVerified" from users where email = $1`,
    [email],
  )
}

export function identitiesOf(
  gateway: TestGateway,
  userId: number,
): Promise<{ issuer: string; sub: string }[]> {
  return gateway.sql('select issuer, sub from identities where user_id = $1 order by issuer, sub', [userId])
}

/** Expects a body with a token pair, the token type and the plan, and with no other member. */
export function expectPair(answer: Answer, status: 200 | 201): void {
  const pair = {
    access_token: expect.stringMatching(/^ey/),
    refresh_token: expect.stringMatching(/^ey/),
    token_type: 'Bearer',
    plan: 'free',
  }
  expect([answer.status, answer.body]).toEqual([status, pair])
  expect(answer.headers.get('cache-control')).toBe('no-store')
}

/**
 * Expects that the browser returns to the page with an error, and that the cookie of the sign-in attempt is deleted.
 * @param state the state of the page; `undefined` if the gateway does not know the attempt, so it deletes no cookie
 */
export function expectReturned(answer: Answer, error: string, state?: string): void {
  const query = new URLSearchParams({ error, ...(state === undefined ? {} : { state }) })
  const location = `${returnUrl}?${query}`
  expect([answer.status, answer.headers.get('location'), answer.text]).toEqual([303, location, ''])
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('x-peage-error')).toBeNull()
  const deletion = /^peage-signin-[\w-]{8}=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax$/
  const deletions = state === undefined ? [] : [expect.stringMatching(deletion)]
  expect(answer.headers.getSetCookie()).toEqual(deletions)
}

/** The refusals of a sign-in: the status, the error code and the message. */
export const refusals = {
  codeInvalid: [400, 'code_invalid', 'Code invalide ou expiré'],
  tokenMissing: [400, 'id_token_missing', 'id_token manquant'],
  tokenInvalid: [401, 'id_token_invalid', "Jeton d'identité invalide ou expiré"],
  credentials: [401, 'credentials_invalid', 'Identifiants invalides'],
  unverified: [403, 'provider_email_unverified', 'E-mail non vérifié par le fournisseur'],
  closed: [403, 'registration_closed', 'Inscriptions fermées'],
  unknown: [404, 'provider_unknown', 'Fournisseur inconnu'],
  exists: [409, 'account_exists', 'Un compte existe déjà avec cet e-mail'],
  unavailable: [503, 'provider_unavailable', "Fournisseur d'identité indisponible"],
} as const
