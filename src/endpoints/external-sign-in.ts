// Serves the sign-in with other identity providers. In the browser flow, the provider redirects the browser to the
// gateway with a code. The gateway redirects the browser to the page with a new code. When the page exchanges the new
// code for tokens, the gateway finds or creates the account.
import { randomBytes } from 'node:crypto'
import type {
  ExternalAccounts,
  ExternalSignIn,
  SignInContext,
  SubmittedProof,
} from '../accounts/external/external-accounts.ts'
import type { SignInCodeStore } from '../accounts/external/sign-in-code-store.ts'
import type { Clock } from '../clock.ts'
import { sha256Hex } from '../identity/token-hash.ts'
import type { Attempt, Attempts } from '../providers/attempts.ts'
import type { Provider } from '../providers/provider.ts'
import { ProviderFailure } from '../providers/provider-failure.ts'
import { rateLimited } from '../refusals/limits.ts'
import { Refusal } from '../refusals/refusal.ts'
import { StorageError } from '../storage/database.ts'
import { limitNames, type RateLimiter } from '../storage/rate-limiter.ts'
import { authPrefix } from './auth.ts'
import { externalOperations } from './external.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'
import {
  type EndpointRequest,
  type EndpointResponse,
  type PublicEndpoint,
  publicEndpoint,
} from './local-endpoint.ts'

interface Dependencies {
  /** The configured providers, in the order of the configuration. */
  providers: readonly Provider[]
  /** `auth.return_urls`. If it is empty, the browser flow is off and its endpoints are never called. */
  returnUrls: readonly string[]
  /** `server.public_url`. Always set if `returnUrls` is not empty. */
  publicUrl: string | undefined
  attempts: Attempts
  accounts: ExternalAccounts
  codes: Pick<SignInCodeStore, 'add'>
  /** `auth.rate_limits.external`. */
  limiter: RateLimiter
  attemptGuess: AttemptGuess
  clock: Clock
  /** Called when a provider fails, or when the gateway does not accept its response or an ID token. */
  onProviderFailure(provider: string, failure: ProviderFailure): void
  /** Called when the store fails, but the browser can still return to its page. The page then gets an error code. */
  onStoreFailure(message: string, error: unknown): void
}

export function createExternalEndpoints(dependencies: Dependencies): PublicEndpoint[] {
  const { providers, returnUrls, publicUrl, attempts, accounts, codes } = dependencies
  const { limiter, attemptGuess, clock, onProviderFailure, onStoreFailure } = dependencies
  const redirectUriOf = (name: string) => `${publicUrl}${authPrefix}/providers/${name}/callback`

  /** @throws Refusal `provider_unknown` */
  function find(name: string): Provider {
    const found = providers.find(({ config }) => config.name === name)
    if (found === undefined) throw new Refusal('provider_unknown')
    return found
  }

  async function enforceLimit(client: string): Promise<void> {
    const taken = await limiter.consume(client)
    if (!taken.allowed) throw rateLimited(limitNames.external, taken)
  }

  /** Runs a request to the provider. Calls `onProviderFailure` if it fails, unless the user cancelled the sign-in. */
  async function ask<T>(provider: Provider, request: () => Promise<T>): Promise<T> {
    try {
      return await request()
    } catch (error) {
      if (error instanceof ProviderFailure && error.reason !== 'access_denied')
        onProviderFailure(provider.config.name, error)
      throw error
    }
  }

  /** @returns `unreadable` if the store fails, because the key that decrypts the cookie is then missing */
  async function findAttempt(
    cookie: string | undefined,
    state: string,
  ): Promise<Attempt | 'unreadable' | undefined> {
    try {
      return await attempts.find(cookie, state)
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      onStoreFailure('key of the sign-in cookies not read', error)
      return 'unreadable'
    }
  }

  /**
   * Exchanges the code of the provider for a code of the gateway.
   * @returns the query parameters that the page gets
   */
  async function redeem(
    provider: Provider,
    attempt: Attempt,
    parameters: URLSearchParams,
  ): Promise<{ code: string } | { error: string }> {
    const { name, issuer, client_id: clientId } = provider.config
    if (attempt.provider !== name || attempt.issuer !== issuer || attempt.clientId !== clientId)
      return { error: 'provider_error' }
    try {
      const request = { ...attempt, redirectUri: redirectUriOf(name) }
      const { person, idToken } = await ask(provider, () => provider.redeemCallback(parameters, request))
      const code = randomBytes(32).toString('base64url')
      const { codeChallenge } = attempt
      const stored = { person, provider: name, codeChallenge, idToken }
      await codes.add(sha256Hex(code), stored, new Date(clock.now()))
      return { code }
    } catch (error) {
      if (error instanceof ProviderFailure) return { error: error.reason }
      if (!(error instanceof StorageError)) throw error
      onStoreFailure('code of a sign-in not stored', error)
      return { error: 'service_unavailable' }
    }
  }

  const contextOf = ({ client, userAgent }: EndpointRequest): SignInContext => ({
    userAgent,
    guess: (email, check) => attemptGuess(client, email, check),
  })

  return [
    publicEndpoint(externalOperations.list, async () => ({
      status: 200,
      body: {
        providers: providers.map(({ config: { name, label } }) => ({
          name,
          label,
          browser: returnUrls.length > 0,
        })),
      },
    })),

    publicEndpoint(externalOperations.start, async ({ client, parameter, query, cookie }) => {
      await enforceLimit(client)
      const provider = find(parameter)
      const page = readStart(query, returnUrls)
      const { name, issuer, client_id: clientId } = provider.config
      const begun = await attempts.begin({ ...page, provider: name, issuer, clientId }, cookie)
      if (begun === undefined) throw invalidField('state')
      const { attempt, setCookies } = begun
      try {
        const request = { ...attempt, redirectUri: redirectUriOf(name) }
        const { href } = await ask(provider, () => provider.authorizationUrl(request))
        return { status: 303, headers: { location: href, 'set-cookie': [...setCookies] } }
      } catch (error) {
        if (!(error instanceof ProviderFailure)) throw error
        return toPage(page.returnUrl, { error: error.reason, state: page.pageState })
      }
    }),

    publicEndpoint(externalOperations.callback, async ({ parameter, query, cookie }) => {
      const provider = find(parameter)
      const parameters = new URLSearchParams(query)
      const [state = '', ...otherStates] = parameters.getAll('state')
      const attempt = otherStates.length > 0 ? undefined : await findAttempt(cookie, state)
      if (attempt === undefined) return toPage(returnUrls[0], { error: 'sign_in_expired' })
      if (attempt === 'unreadable') return toPage(returnUrls[0], { error: 'service_unavailable' })
      const deletion = attempts.end(attempt)
      const { returnUrl, pageState } = attempt
      if (!returnUrls.includes(returnUrl))
        return toPage(returnUrls[0], { error: 'sign_in_expired' }, deletion)
      const result = await redeem(provider, attempt, parameters)
      return toPage(returnUrl, { ...result, state: pageState }, deletion)
    }),

    publicEndpoint(externalOperations.exchange, async request => {
      const { body } = request
      const submitted = {
        code: body.string('code'),
        codeVerifier: body.string('code_verifier'),
        ...proofIn(request),
      }
      return signedIn(await accounts.exchange(submitted, contextOf(request)))
    }),

    publicEndpoint(externalOperations.token, async request => {
      const { client, parameter, body } = request
      await enforceLimit(client)
      const provider = find(parameter)
      const idToken = body.string('id_token').trim()
      if (idToken === '') throw new Refusal('id_token_missing')
      const nonce = body.value('nonce')
      if (nonce !== undefined && nonce !== null && typeof nonce !== 'string')
        throw new Refusal('id_token_invalid', { reason: 'id_token' })
      const verified = await ask(provider, () => provider.verifyIdToken(idToken, nonce ?? undefined)).catch(
        refuseIdToken,
      )
      return signedIn(await accounts.signIn(verified, provider.config, proofIn(request), contextOf(request)))
    }),
  ]
}

function proofIn({ body }: EndpointRequest): SubmittedProof {
  const password = body.string('password')
  return { password, reset: password === '' && body.value('reset') === true }
}

function signedIn({ isNew, userId, ...pair }: ExternalSignIn): EndpointResponse {
  return { status: isNew ? 201 : 200, body: pair, userId }
}

/** @throws Refusal */
function refuseIdToken(error: unknown): never {
  if (!(error instanceof ProviderFailure)) throw error
  if (error.reason === 'provider_unavailable')
    throw new Refusal('provider_unavailable', { headers: { 'retry-after': '5' } })
  throw new Refusal('id_token_invalid', { reason: 'id_token' })
}

function invalidField(field: string): Refusal {
  return new Refusal('request_invalid', { body: { field } })
}

/** @throws Refusal `request_invalid` */
function readStart(query: string, returnUrls: readonly string[]) {
  const parameters = new URLSearchParams(query)
  const read = (name: string, isValid: (value: string) => boolean): string => {
    const [value = '', ...others] = parameters.getAll(name)
    if (others.length > 0 || !isValid(value)) throw invalidField(name)
    return value
  }
  return {
    returnUrl: read('return_url', url => returnUrls.includes(url)),
    pageState: read('state', state => state !== '' && [...state].length <= 512),
    codeChallenge: read('code_challenge', challenge => /^[A-Za-z0-9_-]{43}$/.test(challenge)),
  }
}

/** @param deletion the `Set-Cookie` value that deletes the cookie of the attempt */
function toPage(
  returnUrl = '',
  parameters: Readonly<Record<string, string>>,
  deletion?: string,
): EndpointResponse {
  return {
    status: 303,
    error: parameters.error,
    headers: {
      location: `${returnUrl}?${new URLSearchParams(parameters)}`,
      'referrer-policy': 'no-referrer',
      ...(deletion === undefined ? {} : { 'set-cookie': deletion }),
    },
  }
}
