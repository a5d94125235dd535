// The authorization code flow with an identity provider. openid-client builds the requests and reads the responses.
// This module is loaded at the first sign-in in a browser. Without such sign-ins, openid-client is never loaded.
import { createHash } from 'node:crypto'
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  clockTolerance,
  customFetch,
  fetchUserInfo,
  None,
  ResponseBodyError,
} from 'openid-client'
import { isLoopbackHttp } from '../config/formats/sign-in.ts'
import type { ProviderConfig } from '../config/sections/schema.ts'
import type { Discovery } from './discovery.ts'
import { toleranceSeconds } from './id-token.ts'
import type { LimitedFetch } from './limited-fetch.ts'
import { describeUrl, ProviderFailure } from './provider-failure.ts'

/** The secrets of one sign-in in a browser. */
export interface SignInAttempt {
  /** The redirect URI of the gateway, without query. */
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** The PKCE code verifier (RFC 7636) that the gateway sends to the provider. */
  readonly codeVerifier: string
}

export interface CodeFlow {
  authorizationUrl(attempt: SignInAttempt): URL
  /**
   * Exchanges the code of a callback for tokens. openid-client does not check the signature of the ID token, so the
   * caller must verify the ID token.
   * @throws ProviderFailure
   */
  redeem(
    parameters: URLSearchParams,
    attempt: SignInAttempt,
  ): Promise<{ readonly idToken: string; readonly accessToken: string }>
  /**
   * Returns the claims of the UserInfo response. Returns no claims if the provider has no UserInfo endpoint.
   * @throws ProviderFailure
   */
  userInfo(accessToken: string, sub: string): Promise<Readonly<Record<string, unknown>>>
}

interface Context {
  readonly config: ProviderConfig
  readonly discovery: Discovery
  readonly fetch: LimitedFetch
}

export function createCodeFlow(context: Context): CodeFlow {
  const { config, discovery } = context
  return {
    authorizationUrl: ({ redirectUri, state, nonce, codeVerifier }) =>
      buildAuthorizationUrl(createConfiguration(context), {
        redirect_uri: redirectUri,
        scope: config.scopes.join(' '),
        state,
        nonce,
        code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...(config.prompt !== undefined && { prompt: config.prompt }),
      }),
    redeem: (parameters, { redirectUri, state, nonce, codeVerifier }) =>
      exchange(context, discovery.tokenEndpoint, async configuration => {
        const callback = new URL(redirectUri)
        callback.search = parameters.toString()
        const tokens = await authorizationCodeGrant(configuration, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
        })
        // With `expectedNonce`, openid-client requires an ID token, so `id_token` is always set.
        return { idToken: tokens.id_token as string, accessToken: tokens.access_token }
      }),
    async userInfo(accessToken, sub) {
      const { userInfoEndpoint } = discovery
      if (userInfoEndpoint === undefined) return {}
      return exchange(context, userInfoEndpoint, configuration =>
        fetchUserInfo(configuration, accessToken, sub),
      )
    },
  }
}

/** Runs one request of openid-client to the endpoint. Converts errors to `ProviderFailure`. */
async function exchange<T>(
  context: Context,
  endpoint: string,
  run: (configuration: Configuration) => Promise<T>,
): Promise<T> {
  let status: number | undefined
  let failure: unknown
  const configuration = createConfiguration(context)
  configuration[customFetch] = async (url, { method, headers, body }) => {
    try {
      const response = await context.fetch.request(url, {
        method,
        headers,
        body: body === null || body === undefined ? null : String(body),
      })
      status = response.status
      return response
    } catch (error) {
      failure = error
      throw error
    }
  }
  try {
    return await run(configuration)
  } catch (error) {
    throw failure ?? failureOf(error, endpoint, status)
  }
}

/** @param status the status of the response; undefined if the error is in the parameters of the callback */
function failureOf(error: unknown, endpoint: string, status: number | undefined): ProviderFailure {
  if (error instanceof AuthorizationResponseError) {
    const reason = error.error === 'access_denied' ? 'access_denied' : 'provider_error'
    return new ProviderFailure(reason, 'callback', [`the provider responded with ${nameOf(error.error)}`])
  }
  if (status === undefined) return new ProviderFailure('provider_error', 'callback', [problemOf(error)])
  if (status === 200)
    return new ProviderFailure('id_token_invalid', describeUrl(endpoint), [problemOf(error)])
  const code = error instanceof ResponseBodyError ? [`error ${nameOf(error.error)}`] : []
  return new ProviderFailure('provider_error', describeUrl(endpoint), [`status ${status}`, ...code])
}

/**
 * Only a text that looks like an error code is logged. Any other text may contain an email or may be forged by the
 * browser.
 */
function nameOf(error: string): string {
  return /^\w{1,64}$/.test(error) ? `"${error}"` : 'an unknown error'
}

/** Returns only messages that are known to contain no text of the response. */
function problemOf(error: unknown): string {
  if (!(error instanceof ClientError)) return 'the response is malformed'
  const { cause } = error
  return cause instanceof Error && cause.name === 'OperationProcessingError' ? cause.message : error.message
}

/**
 * Configures openid-client. The discovery of openid-client is not used, because it makes exceptions for Microsoft.
 * There, it also accepts tenants and issuers that are not configured.
 */
function createConfiguration({ config, discovery }: Context): Configuration {
  const server = {
    issuer: config.issuer,
    authorization_endpoint: discovery.authorizationEndpoint,
    token_endpoint: discovery.tokenEndpoint,
    ...(discovery.userInfoEndpoint !== undefined && { userinfo_endpoint: discovery.userInfoEndpoint }),
    id_token_signing_alg_values_supported: [...discovery.algorithms],
    authorization_response_iss_parameter_supported: discovery.sendsIssuer,
  }
  const client = { [clockTolerance]: toleranceSeconds }
  const configuration = new Configuration(server, config.client_id, client, authentication(config, discovery))
  // Disables the timeout of openid-client, because `fetch` already limits the time for the whole response.
  configuration.timeout = 0
  if (isLoopbackHttp(config.issuer)) allowInsecureRequests(configuration)
  return configuration
}

function authentication({ client_secret: secret }: ProviderConfig, { secretMethod }: Discovery): ClientAuth {
  if (secret === '') return None()
  return secretMethod === 'client_secret_post' ? ClientSecretPost(secret) : ClientSecretBasic(secret)
}
