// Signs users in with one identity provider (OpenID Connect).
import type { Clock } from '../clock.ts'
import type { ProviderConfig } from '../config/sections/schema.ts'
import type { ExternalPerson, UsableIdToken } from '../users/external-person.ts'
import { createCachedDocument } from './cached-document.ts'
import type { CodeFlow, SignInAttempt } from './code-flow.ts'
import { type Discovery, discoveryUrl, readDiscovery } from './discovery.ts'
import { type CheckedIdToken, checkIdToken, type NonceCheck, nonceCheckForApp } from './id-token.ts'
import { createKeys, type KeySet, readKeys } from './key-set.ts'
import { createLimitedFetch, type RequestOutcome } from './limited-fetch.ts'
import { ProviderFailure } from './provider-failure.ts'
import { verifiedEmail } from './verified-email.ts'

export interface VerifiedIdToken {
  readonly person: ExternalPerson
  /** The caller must record the ID token as used, so that it creates only one session. */
  readonly idToken: UsableIdToken
}

export interface Provider {
  readonly config: ProviderConfig
  /**
   * Returns the URL to which the gateway sends the browser.
   * @throws ProviderFailure `provider_unavailable`
   */
  authorizationUrl(attempt: SignInAttempt): Promise<URL>
  /**
   * Redeems the code of a callback, and verifies the ID token. Queries UserInfo if the ID token has no email.
   * @param parameters the query of the callback
   * @throws ProviderFailure
   */
  redeemCallback(parameters: URLSearchParams, attempt: SignInAttempt): Promise<VerifiedIdToken>
  /**
   * Verifies an ID token that an app sends.
   * @param nonce the nonce of the app; the ID token must contain its SHA-256. Undefined if the app sends no nonce.
   * @throws ProviderFailure `id_token_invalid`, `provider_unavailable`
   */
  verifyIdToken(idToken: string, nonce: string | undefined): Promise<VerifiedIdToken>
  /** Fetches the discovery document and the keys without a cache. Returns a line for each problem. */
  test(): Promise<readonly string[]>
}

interface Options {
  readonly config: ProviderConfig
  readonly clock: Clock
  /** Called once for each request to the provider. */
  onRequest(outcome: RequestOutcome): void
  /** The CA in PEM format, which replaces the system's CAs. */
  readonly ca?: string | undefined
}

const hourMs = 60 * 60_000

/** Creates the provider, but sends no request yet. Each provider caches its own discovery document and keys. */
export function createProvider({ config, clock, onRequest, ca }: Options): Provider {
  const { issuer } = config
  const fetch = createLimitedFetch({ issuer, ca, onRequest })

  function fetchDiscovery(): Promise<Discovery> {
    return fetch.document(discoveryUrl(issuer), document => readDiscovery(document, issuer))
  }

  function fetchKeys(discovery: Discovery): Promise<KeySet> {
    return fetch.document(discovery.jwksUri, document => readKeys(document, discovery))
  }

  const discovery = createCachedDocument({
    fetch: fetchDiscovery,
    clock,
    freshMs: hourMs,
    usableMs: hourMs,
  })
  const keys = createKeys(async () => fetchKeys(await discovery.get()), clock)

  function check(idToken: string, isNonce: NonceCheck): Promise<CheckedIdToken> {
    return checkIdToken(idToken, isNonce, { config, keys, clock })
  }

  /** @param profile the claims of the ID token or of the UserInfo response, from which the email is read */
  function verified(
    { claims, idToken }: CheckedIdToken,
    profile: Readonly<Record<string, unknown>>,
  ): VerifiedIdToken {
    return { person: { issuer, sub: claims.sub, email: verifiedEmail(profile, config) }, idToken }
  }

  async function openFlow(): Promise<CodeFlow> {
    const { createCodeFlow } = await import('./code-flow.ts')
    return createCodeFlow({ config, discovery: await discovery.get(), fetch })
  }

  return {
    config,
    authorizationUrl: async attempt => (await openFlow()).authorizationUrl(attempt),
    async redeemCallback(parameters, attempt) {
      const flow = await openFlow()
      const { idToken, accessToken } = await flow.redeem(parameters, attempt)
      const checked = await check(idToken, nonce => nonce === attempt.nonce)
      const { claims } = checked
      return verified(checked, 'email' in claims ? claims : await flow.userInfo(accessToken, claims.sub))
    },
    async verifyIdToken(idToken, nonce) {
      const checked = await check(idToken, nonceCheckForApp(nonce))
      return verified(checked, checked.claims)
    },
    async test() {
      try {
        await fetchKeys(await fetchDiscovery())
        return []
      } catch (error) {
        if (error instanceof ProviderFailure) return error.lines
        throw error
      }
    },
  }
}
