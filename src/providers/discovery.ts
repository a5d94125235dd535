// Checks the discovery document of an identity provider (OpenID Connect Discovery 1.0, section 3).
import { isAllowedUrl, type JsonObject } from './limited-fetch.ts'
import { quote } from './provider-failure.ts'

/** The part of the discovery document that the gateway uses. */
export interface Discovery {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly userInfoEndpoint: string | undefined
  readonly jwksUri: string
  /** The asymmetric algorithms with which the provider signs ID tokens. At least one. */
  readonly algorithms: readonly string[]
  readonly secretMethod: 'client_secret_post' | 'client_secret_basic'
  /** Whether each callback has the parameter `iss` (RFC 9207). */
  readonly sendsIssuer: boolean
}

/**
 * Other algorithms are refused. `HS256` uses a shared secret and `none` uses no key, so clients could create ID tokens.
 */
const asymmetric = new Set([
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
])

export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/**
 * Reads the discovery document.
 * @param issuer the configured issuer
 * @returns the content; if the gateway cannot use the document, the list of all problems
 */
export function readDiscovery(document: JsonObject, issuer: string): Discovery | readonly string[] {
  const problems: string[] = []
  if (document.issuer !== issuer)
    problems.push(`issuer is ${quote(document.issuer)}, but ${quote(issuer)} is configured`)

  function readEndpoint(name: string): string {
    const url = document[name]
    if (typeof url === 'string' && isAllowedUrl(url, issuer)) return url
    problems.push(`${name} is ${quote(url)}, but it must be an https:// address`)
    return ''
  }

  function readList(name: string, whenMissing: readonly string[]): readonly unknown[] {
    const list = document[name] ?? whenMissing
    if (Array.isArray(list)) return list
    problems.push(`${name} is ${quote(list)}, but it must be a list`)
    return whenMissing
  }

  const algorithmsName = 'id_token_signing_alg_values_supported'
  const listed = readList(algorithmsName, ['RS256'])
  const algorithms = [...asymmetric].filter(algorithm => listed.includes(algorithm))
  if (algorithms.length === 0) problems.push(`${algorithmsName} contains no asymmetric algorithm`)
  const methods = readList('token_endpoint_auth_methods_supported', ['client_secret_basic'])
  const discovery = {
    authorizationEndpoint: readEndpoint('authorization_endpoint'),
    tokenEndpoint: readEndpoint('token_endpoint'),
    userInfoEndpoint:
      (document.userinfo_endpoint ?? undefined) === undefined ? undefined : readEndpoint('userinfo_endpoint'),
    jwksUri: readEndpoint('jwks_uri'),
    algorithms,
    secretMethod: methods.includes('client_secret_post') ? 'client_secret_post' : 'client_secret_basic',
    sendsIssuer: document.authorization_response_iss_parameter_supported === true,
  } as const
  return problems.length === 0 ? discovery : problems
}
