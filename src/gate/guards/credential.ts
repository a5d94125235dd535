// What a request presents to say who it is: a bearer token, an API key, or nothing (spec §5).
import { isBlank, stripSpace } from '../../identity/api-tokens/api-tokens.ts'
import { isGatewayToken } from '../../identity/tokens/tokens.ts'

export interface Credentials {
  /** The bearer token, `undefined` where there is none or the field is malformed. */
  readonly bearer: string | undefined
  /** The API key stripped of white space, `undefined` where empty or absent. */
  readonly apiKey: string | undefined
  /** An `Authorization` of any kind, or a key, was there: the request does not go on as anonymous. */
  readonly isPresented: boolean
  /** An `Authorization` was there: the 401 says `error="invalid_token"` (RFC 6750 §3.1). */
  readonly isTokenPresented: boolean
}

/** @param authorization @param apiKey field values as received */
export function readCredentials(authorization: string | undefined, apiKey: string | undefined): Credentials {
  const key = stripped(apiKey)
  const isTokenPresented = authorization !== undefined && !isBlank(authorization)
  return {
    bearer: authorization === undefined ? undefined : bearerSyntax.exec(authorization)?.[1],
    apiKey: key,
    isPresented: isTokenPresented || key !== undefined,
    isTokenPresented,
  }
}

/**
 * What stands behind the scheme as nearly everybody writes it, unread: only good for asking whether it is a token that
 * is remembered, which was read letter by letter when it came first.
 * @param authorization the field's value as received
 */
export function bearerUnchecked(authorization: string): string | undefined {
  return authorization.startsWith('Bearer ') ? authorization.slice(7) : undefined
}

/**
 * Whether a value carries a token or a key that this gateway issued: it must not leak to an upstream, not even from
 * the field where the other one belongs.
 */
export function carriesGatewayCredential(value: string): boolean {
  return value.split(/[\s,]+/).some(part => isGatewayToken(part) || part.startsWith('peage_'))
}

/** Whether an API key is one that this gateway issued. */
export function isGatewayApiKey(apiKey: string): boolean {
  return stripped(apiKey)?.startsWith('peage_') ?? false
}

// RFC 6750 §2.1, the scheme in any letter case (RFC 9110 §11.1).
const bearerSyntax = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i

/** Nothing where nothing but white space was sent. */
function stripped(value: string | undefined): string | undefined {
  const bare = value === undefined ? '' : stripSpace(value)
  return bare === '' ? undefined : bare
}
