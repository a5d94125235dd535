// Issues access tokens, refresh tokens and identity assertions. Verifies access tokens and refresh tokens.
import { randomBytes } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../../clock.ts'
import type { Plan } from '../../users/user.ts'
import type { ApiKey } from '../api-keys/api-key-store.ts'
import { assertionTtlMs } from '../keys/key-schedule.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'

/**
 * The data that the gateway uses from a valid token. Other data about the user, for example the plan, comes from the
 * database.
 */
export interface VerifiedToken {
  userId: number
  /** The ID of the key that signed the token. If this key is removed, the token becomes invalid. */
  kid: string
  /** The expiry in milliseconds since the epoch. The token is invalid from this time on. */
  expiresAtMs: number
  /** Milliseconds since the epoch. */
  issuedAtMs: number
  /** The `sid` claim. Undefined for a token that Péage 0.1 issued. */
  sessionId: string | undefined
}

export type TokenProblem =
  | 'malformed'
  | 'type'
  | 'key_unknown'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'expired'

/** The session for which a token is issued. */
export interface TokenSession {
  readonly id: string
  /**
   * The end of the session in milliseconds since the epoch. Tokens of the session expire at this time or earlier.
   * `Infinity` if `auth.session_max` is not set.
   */
  readonly endsAtMs: number
}

export interface Tokens {
  /** @param session the session whose ID the token contains; the token expires when this session ends, or earlier */
  issueAccess(user: { id: number; email: string; plan: Plan }, session: TokenSession): Promise<string>
  /**
   * `expiresAt` is stored with the session and is exact to the millisecond. The `exp` claim of the token has whole
   * seconds.
   */
  issueRefresh(userId: number, session: TokenSession): Promise<{ token: string; expiresAt: Date }>
  /**
   * Issues an identity assertion for one upstream. The `typ` of this token is `JWT`, so the gateway does not accept it
   * as an access or refresh token.
   * @param audience the name of the upstream
   * @param key the API key of the request, if the token should contain its ID and scopes
   */
  issueAssertion(
    user: { id: number; plan: Plan },
    audience: string,
    key?: Pick<ApiKey, 'id' | 'scopes'>,
  ): Promise<string>
  /** @throws StorageError if the token's key is not loaded and the stored keys cannot be read */
  verifyAccess(token: string): Promise<VerifiedToken | TokenProblem>
  /** @throws StorageError under the same conditions as `verifyAccess` */
  verifyRefresh(token: string): Promise<VerifiedToken | TokenProblem>
  /**
   * Verifies without reading the stored keys. If the signing key of the token is not loaded, the result is
   * `key_unknown`.
   */
  verifyRefreshOffline(token: string): Promise<VerifiedToken | TokenProblem>
}

interface Options {
  keys: SigningKeys
  clock: Clock
  issuer: string
  audience: string
  /** Both lifetimes are rounded up to whole seconds. A token never expires later than its session. */
  accessTokenTtlMs: number
  refreshTokenTtlMs: number
}

export function createTokens({
  keys,
  clock,
  issuer,
  audience,
  accessTokenTtlMs,
  refreshTokenTtlMs,
}: Options): Tokens {
  function issue(
    typ: TokenType | 'JWT',
    userId: number,
    { now, ttlMs, endsAtMs = Number.POSITIVE_INFINITY }: { now: number; ttlMs: number; endsAtMs?: number },
    claims: Record<string, unknown>,
  ) {
    const { kid, alg, privateKey } = typ === 'JWT' ? keys.forAssertions() : keys.current()
    const issuedAt = Math.floor(now / 1000)
    return new SignJWT({
      iss: issuer,
      aud: audience,
      sub: String(userId),
      ...claims,
      iat: issuedAt,
      // `endsAtMs` is rounded down to whole seconds, so that no token is valid after the end of its session.
      exp: Math.min(issuedAt + Math.ceil(ttlMs / 1000), Math.floor(endsAtMs / 1000)),
      jti: randomBytes(16).toString('base64url'),
    })
      .setProtectedHeader({ alg, typ, kid })
      .sign(privateKey)
  }

  async function verify(
    { token, claims }: DecodedToken,
    key: SigningKey,
  ): Promise<VerifiedToken | TokenProblem> {
    const userId = parseSubject(claims.sub)
    // The `aud` claim must be a single text. jose would also accept a list that contains the expected audience.
    if (userId === undefined) return 'malformed'
    if (typeof claims.aud !== 'string') return 'audience'
    try {
      const { payload } = await jwtVerify(token, key.publicKey, {
        algorithms: [key.alg],
        issuer,
        audience,
        requiredClaims: ['exp'],
        currentDate: new Date(clock.now()),
      })
      return {
        userId,
        kid: key.kid,
        expiresAtMs: Number(payload.exp) * 1000,
        issuedAtMs: Number(payload.iat) * 1000,
        sessionId: typeof payload.sid === 'string' ? payload.sid : undefined,
      }
    } catch (error) {
      return problemOf(error)
    }
  }

  async function verifyWith(find: SigningKeys['find'], typ: TokenType, token: string) {
    const decoded = decode(token, typ)
    if (typeof decoded === 'string') return decoded
    const key = await find(decoded.kid)
    if (key === undefined) return 'key_unknown'
    return decoded.alg === key.alg ? verify(decoded, key) : 'signature'
  }

  return {
    issueAccess({ id, email, plan }, { id: sid, endsAtMs }) {
      const lifetime = { now: clock.now(), ttlMs: accessTokenTtlMs, endsAtMs }
      return issue('at+jwt', id, lifetime, { plan, email, sid })
    },

    issueAssertion({ id, plan }, upstream, key) {
      const scope = key?.scopes?.join(' ')
      const claims = { plan, ...(key && { key_id: key.id }), ...(scope !== undefined && { scope }) }
      return issue('JWT', id, { now: clock.now(), ttlMs: assertionTtlMs }, { aud: upstream, ...claims })
    },

    async issueRefresh(userId, { id: sid, endsAtMs }) {
      const now = clock.now()
      const token = await issue('rt+jwt', userId, { now, ttlMs: refreshTokenTtlMs, endsAtMs }, { sid })
      return { token, expiresAt: new Date(Math.min(now + refreshTokenTtlMs, endsAtMs)) }
    },

    verifyAccess: token => verifyWith(keys.find, 'at+jwt', token),
    verifyRefresh: token => verifyWith(keys.find, 'rt+jwt', token),
    verifyRefreshOffline: token => verifyWith(async kid => keys.getLoaded(kid), 'rt+jwt', token),
  }
}

/** @param error an error that `jwtVerify` threw; `jwtVerify` checks the signature before the claims */
function problemOf(error: unknown): TokenProblem {
  if (error instanceof errors.JWTExpired) return 'expired'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  if (!(error instanceof errors.JWTClaimValidationFailed)) return 'malformed'
  if (error.claim === 'iss') return 'issuer'
  return error.claim === 'aud' ? 'audience' : 'malformed'
}

/**
 * Returns whether a text looks like an access or refresh token of the gateway. The token may be invalid. The gateway
 * must not send these tokens to an upstream.
 */
export function isGatewayToken(token: string): boolean {
  const [header = ''] = token.split('.', 1)
  // A shorter header cannot contain a `typ` of the gateway. Callers split the value of a request header at commas.
  // Without this check, a value full of commas would cause thousands of parses.
  if (header.length < minHeaderChars) return false
  const typ = parseObject(Buffer.from(header, 'base64url').toString())?.typ
  return typeof typ === 'string' && /^(application\/)?(at|rt)\+jwt$/i.test(typ)
}

/**
 * Parses the user id of a `sub` claim. The id is a decimal integer from 1 to 2^53 − 1, without sign, leading zero or
 * white space. Without the pattern, `Number()` would also accept `1e3`, `0x1` and ` 1`.
 */
export function parseSubject(sub: unknown): number | undefined {
  if (typeof sub !== 'string' || !/^[1-9][0-9]{0,15}$/.test(sub)) return undefined
  const id = Number(sub)
  return Number.isSafeInteger(id) ? id : undefined
}

type TokenType = 'at+jwt' | 'rt+jwt'

interface DecodedToken {
  token: string
  kid: string
  alg: string
  claims: Record<string, unknown>
}

/**
 * Parses a token, but only in the exact form that the gateway writes. Other forms can be read in two ways, for example
 * JSON with duplicate members, or a second base64 text for the same bytes. Header members other than `alg`, `kid` and
 * `typ` are refused too. They can name a key or change how the token is read (`jwk`, `jku`, `x5c`, `crit`, `b64`; RFC
 * 8725 §3).
 */
function decode(token: string, typ: TokenType): DecodedToken | 'malformed' | 'type' {
  if (token.length > maxTokenBytes) return 'malformed'
  const parts = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(token)?.slice(1)
  if (parts === undefined) return 'malformed'
  const [header, payload, signature] = parts.map(part => Buffer.from(part, 'base64url'))
  if (header === undefined || payload === undefined || signature === undefined) return 'malformed'
  if ([header, payload, signature].some((bytes, i) => bytes.toString('base64url') !== parts[i]))
    return 'malformed'
  const members = parseCompact(header)
  const claims = parseCompact(payload)
  if (members === undefined || claims === undefined) return 'malformed'
  const { alg, kid, typ: presented, ...rest } = members
  if (presented !== typ) return 'type'
  if (typeof alg !== 'string' || typeof kid !== 'string' || Object.keys(rest).length > 0) return 'malformed'
  return { token, kid, alg, claims }
}

/** The length in base64url of `{"typ":"at+jwt"}`, the shortest header with a `typ` of the gateway. */
const minHeaderChars = 22

/** The maximum length of a token, 4 KiB. An accepted token is ASCII, so each character is one byte. */
const maxTokenBytes = 4096

/**
 * Parses a JSON object. Accepts only bytes that `JSON.stringify` would write, which excludes duplicate members and
 * invalid UTF-8.
 */
function parseCompact(bytes: Buffer): Record<string, unknown> | undefined {
  const object = parseObject(bytes.toString())
  return object !== undefined && bytes.equals(Buffer.from(JSON.stringify(object))) ? object : undefined
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
