// Reads the credentials of a request: a bearer token, an API key, or none.
import { stripSpace } from '../../identity/api-keys/api-key.ts'
import { isGatewayToken } from '../../identity/tokens/tokens.ts'

export interface Credentials {
  /** The bearer token; undefined if the `Authorization` header is absent or malformed. */
  readonly bearer: string | undefined
  /** The API key, without white space at both ends; undefined if it is empty or absent. */
  readonly apiKey: string | undefined
  /**
   * Whether the request has an API key or an `Authorization` header, even a malformed one. If so, the request is not
   * anonymous.
   */
  readonly isPresented: boolean
  /**
   * Whether the request has an `Authorization` header. If so, a 401 response contains `error="invalid_token"` (RFC 6750
   * §3.1).
   */
  readonly isTokenPresented: boolean
}

export function readCredentials(authorization: string | undefined, apiKey: string | undefined): Credentials {
  const key = stripped(apiKey)
  const isTokenPresented = stripped(authorization) !== undefined
  return {
    bearer: authorization === undefined ? undefined : bearerSyntax.exec(authorization)?.[1],
    apiKey: key,
    isPresented: isTokenPresented || key !== undefined,
    isTokenPresented,
  }
}

/**
 * Returns the text after `Bearer `, without a check of its syntax. For other spellings, for example `bearer`, returns
 * undefined. Use this function only to look up a token in the cache, because cached tokens have passed the check.
 */
export function bearerUnchecked(authorization: string): string | undefined {
  return authorization.startsWith('Bearer ') ? authorization.slice(7) : undefined
}

/**
 * Returns whether a value contains an access token or API key of this gateway. The gateway must not forward these
 * credentials, even if the client sent them in the wrong header.
 */
export function carriesGatewayCredential(value: string): boolean {
  return value.split(/[\s,]+/).some(part => isGatewayToken(part) || part.startsWith('peage_'))
}

export function isGatewayApiKey(apiKey: string): boolean {
  return stripped(apiKey)?.startsWith('peage_') ?? false
}

// The syntax of RFC 6750 §2.1, with `Bearer` in any letter case (RFC 9110 §11.1).
const bearerSyntax = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i

function stripped(value: string | undefined): string | undefined {
  const bare = value === undefined ? '' : stripSpace(value)
  return bare === '' ? undefined : bare
}
