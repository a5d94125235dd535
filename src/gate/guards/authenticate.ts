// The authentication guard: bearer token, else API key, else 401 (spec §5).
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import { rateLimitKey } from '../../http/client-address.ts'
import { hashApiToken } from '../../identity/api-tokens/api-tokens.ts'
import type { LastUsed } from '../../identity/api-tokens/last-used.ts'
import type { SessionCache } from '../../identity/cache/session-cache.ts'
import type { TokenCache } from '../../identity/cache/token-cache.ts'
import type { ApiTokenOwner, UserCache } from '../../identity/cache/user-cache.ts'
import { anonymous, type Identity } from '../../identity/identity.ts'
import type { TokenProblem, VerifiedToken } from '../../identity/tokens/tokens.ts'
import { rateLimited } from '../../refusals/limits.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { StorageError } from '../../storage/database.ts'
import { limitNames, type RateLimiter } from '../../storage/rate-limiter.ts'
import type { RequestHead } from '../parsing/request-head.ts'
import type { Route } from '../routing/route.ts'
import { bearerUnchecked, type Credentials, readCredentials } from './credential.ts'
import type { Guard } from './guard.ts'

/** What authentication queries. */
export interface AuthenticationDependencies {
  tokens: TokenCache
  users: Omit<UserCache, 'close'>
  /** Undefined where an access token outlives its session: `auth.logout_ends_access` is off. */
  sessions: Pick<SessionCache, 'isLive'> | undefined
  lastUsed: Pick<LastUsed, 'record'>
  badKeys: RateLimiter
  /** Receives the error that made an API key's check fail; the client only learns that the key is invalid. */
  onApiTokenError(error: unknown): void
}

/** @param auth `routes[].auth` */
export type Authenticate = (auth: Route['auth']) => Guard<void, Identity>

/**
 * Throws the spec's 401s; 503 if a bearer's user cannot be read (the StorageError propagates); 429 past `bad_keys`.
 * The user is the stored record, never the token's claims. Synchronous if token and user are cached.
 */
export function createAuthenticate(dependencies: AuthenticationDependencies): Authenticate {
  function identify(head: RequestHead, isOptional: boolean): MaybePromise<Identity> {
    const { authorization, apiKey, client } = head
    const remembered = findCached(dependencies, authorization)
    if (remembered !== undefined) return identifyByToken(dependencies, remembered, head)
    const credentials = readCredentials(authorization, apiKey)
    if (isOptional && !credentials.isPresented) return anonymous
    if (credentials.bearer === undefined) {
      const problem = credentials.isTokenPresented ? 'malformed' : 'missing'
      return identifyByApiKey(dependencies, credentials, client, problem)
    }
    return chain(dependencies.tokens.verify(credentials.bearer), claims =>
      typeof claims === 'string'
        ? identifyByApiKey(dependencies, credentials, client, claims)
        : identifyByToken(dependencies, claims, head),
    )
  }

  return auth => {
    if (auth === 'none') return () => anonymous
    const isOptional = auth === 'optional'
    return request =>
      chain(identify(request.head, isOptional), identity => {
        request.identity = identity
        return identity
      })
  }
}

function findCached(
  { tokens }: AuthenticationDependencies,
  authorization: string | undefined,
): VerifiedToken | undefined {
  const token = authorization === undefined ? undefined : bearerUnchecked(authorization)
  return token === undefined ? undefined : tokens.get(token)
}

function identifyByToken(
  dependencies: AuthenticationDependencies,
  { userId, sessionId }: VerifiedToken,
  { authorization, apiKey, client }: RequestHead,
): MaybePromise<Identity> {
  const { users, sessions } = dependencies
  return chain(users.find(userId), user => {
    if (user === undefined) {
      throw new Refusal('user_not_found', { headers: challenge({ isTokenPresented: true }) })
    }
    const identity: Identity = { kind: 'user', user, credential: 'access_token', sessionId }
    if (sessions === undefined || sessionId === undefined) return identity
    return chain(sessions.isLive(user, sessionId), isLive => {
      if (isLive) return identity
      // An invalid token, but looked at after the user (CONTRACT §12).
      return identifyByApiKey(dependencies, readCredentials(authorization, apiKey), client, 'session_ended')
    })
  })
}

/** @param problem of the access token, for the log if there is no key either */
function identifyByApiKey(
  dependencies: AuthenticationDependencies,
  credentials: Credentials,
  client: string,
  problem: TokenProblem | 'missing' | 'session_ended',
): MaybePromise<Identity> {
  if (credentials.apiKey === undefined) {
    throw new Refusal('token_invalid', { reason: problem, headers: challenge(credentials) })
  }
  const owner = dependencies.users.findOwner(hashApiToken(credentials.apiKey))
  // Only a cached owner is certain: a read from the store may fail, or find no owner.
  if (owner !== undefined && !(owner instanceof Promise)) return identified(dependencies, owner)
  return lookUp(dependencies, owner, credentials, client)
}

function identified({ lastUsed }: AuthenticationDependencies, { user, apiTokenId }: ApiTokenOwner): Identity {
  lastUsed.record(apiTokenId)
  return { kind: 'user', user, credential: 'api_token', apiTokenId }
}

async function lookUp(
  dependencies: AuthenticationDependencies,
  looking: MaybePromise<ApiTokenOwner | undefined>,
  credentials: Credentials,
  client: string,
): Promise<Identity> {
  const owner = await orInvalid(dependencies, looking, credentials)
  if (owner !== undefined) return identified(dependencies, owner)
  const taken = await dependencies.badKeys.consume(rateLimitKey(client))
  if (!taken.allowed) throw rateLimited(limitNames.bad_keys, taken)
  throw new Refusal('token_invalid', { reason: 'unknown', headers: challenge(credentials) })
}

/** "Any failure while validating a key counts as an invalid key" (spec §5): 401 even if the store is unreachable. */
async function orInvalid(
  dependencies: AuthenticationDependencies,
  looking: MaybePromise<ApiTokenOwner | undefined>,
  credentials: Credentials,
) {
  try {
    return await looking
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    dependencies.onApiTokenError(error)
    throw new Refusal('key_check_failed', { headers: { ...challenge(credentials), 'retry-after': '1' } })
  }
}

/** RFC 6750 §3: the challenge names the error only if a token was presented. */
function challenge({ isTokenPresented }: Pick<Credentials, 'isTokenPresented'>): Record<string, string> {
  return { 'www-authenticate': isTokenPresented ? 'Bearer error="invalid_token"' : 'Bearer' }
}
