// Defines the authentication guard. It accepts a bearer token or an API key. If neither is valid, it refuses with 401.
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import { rateLimitKey } from '../../http/client-address.ts'
import { hashApiKey } from '../../identity/api-keys/api-key.ts'
import { isExpired } from '../../identity/api-keys/api-key-store.ts'
import type { LastUsed } from '../../identity/api-keys/last-used.ts'
import type { SessionCache } from '../../identity/cache/session-cache.ts'
import type { TokenCache } from '../../identity/cache/token-cache.ts'
import type { KeyOwner, UserCache } from '../../identity/cache/user-cache.ts'
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

export interface AuthenticationDependencies {
  tokens: TokenCache
  users: Omit<UserCache, 'close'>
  /** Undefined if `auth.logout_ends_access` is off. An access token then stays valid after its session has ended. */
  sessions: Pick<SessionCache, 'isLive'> | undefined
  lastUsed: Pick<LastUsed, 'record'>
  badKeys: RateLimiter
  /** Called with the error if an API key could not be checked. The client receives only a 401. */
  onApiKeyError(error: unknown): void
  clock: Clock
}

/** @param auth the value of `routes[].auth` */
export type Authenticate = (auth: Route['auth']) => Guard<void, Identity>

/**
 * Creates the guard. The guard reads the plan of the user from the stored record, never from the claims of the token.
 * The guard is synchronous if token and user are cached.
 * @throws Refusal 401 if the credential is missing or invalid
 * @throws StorageError, which becomes a 503, if the user of a bearer token cannot be read
 * @throws Refusal 429 after too many invalid API keys (`bad_keys`)
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
    const identity: Identity = { kind: 'user', user, sessionId, apiKey: undefined }
    if (sessions === undefined || sessionId === undefined) return identity
    return chain(sessions.isLive(user, sessionId), isLive => {
      if (isLive) return identity
      // If the session has ended, the token is invalid, but an API key of the same request may still be valid. The user
      // is checked before the session, so that a token of a deleted user gets `user_not_found`.
      return identifyByApiKey(dependencies, readCredentials(authorization, apiKey), client, 'session_ended')
    })
  })
}

/** @param problem the reason why the access token is missing or invalid; it is logged if there is no API key */
function identifyByApiKey(
  dependencies: AuthenticationDependencies,
  credentials: Credentials,
  client: string,
  problem: TokenProblem | 'missing' | 'session_ended',
): MaybePromise<Identity> {
  if (credentials.apiKey === undefined) {
    throw new Refusal('token_invalid', { reason: problem, headers: challenge(credentials) })
  }
  const keyHash = hashApiKey(credentials.apiKey)
  const owner = dependencies.users.findOwner(keyHash)
  // If the owner of the key is cached and the key has not expired, no wait is needed. Otherwise `lookUp` reads from the
  // store, which may fail or find no owner.
  const identity = owner instanceof Promise ? undefined : identified(dependencies, owner)
  return identity ?? lookUp(dependencies, { owner, keyHash }, credentials, client)
}

/** @returns undefined if there is no owner, or if the key has expired */
function identified(
  { lastUsed, clock }: AuthenticationDependencies,
  owner: KeyOwner | undefined,
): Identity | undefined {
  if (owner === undefined) return undefined
  const { user, apiKey } = owner
  if (isExpired(apiKey, clock.now())) return undefined
  lastUsed.record(apiKey.id)
  return { kind: 'user', user, sessionId: undefined, apiKey }
}

interface Lookup {
  readonly owner: MaybePromise<KeyOwner | undefined>
  readonly keyHash: string
}

async function lookUp(
  dependencies: AuthenticationDependencies,
  looking: Lookup,
  credentials: Credentials,
  client: string,
): Promise<Identity> {
  const owner = await orInvalid(dependencies, looking, credentials)
  const identity = owner === 'expired' ? undefined : identified(dependencies, owner)
  if (identity !== undefined) return identity
  const taken = await dependencies.badKeys.consume(rateLimitKey(client))
  if (!taken.allowed) throw rateLimited(limitNames.bad_keys, taken)
  const reason = owner === undefined ? 'unknown' : 'expired'
  throw new Refusal('token_invalid', { reason, headers: challenge(credentials) })
}

/**
 * Waits for the owner of the API key. If the store is unreachable, the response is a 401, as for an invalid key.
 * @returns `expired` if the store is unreachable, but the last cached record shows that the key has expired
 * @throws Refusal `key_check_failed` if the store is unreachable
 */
async function orInvalid(
  { users, clock, onApiKeyError }: AuthenticationDependencies,
  { owner, keyHash }: Lookup,
  credentials: Credentials,
): Promise<KeyOwner | 'expired' | undefined> {
  try {
    return await owner
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    const known = users.lastKnownKey(keyHash)
    if (known !== undefined && isExpired(known, clock.now())) return 'expired'
    onApiKeyError(error)
    throw new Refusal('key_check_failed', { headers: { ...challenge(credentials), 'retry-after': '1' } })
  }
}

/** Returns the header `WWW-Authenticate` of a 401. `error` is set only if the request has a token (RFC 6750 §3). */
export function challenge({
  isTokenPresented,
}: Pick<Credentials, 'isTokenPresented'>): Record<string, string> {
  return { 'www-authenticate': isTokenPresented ? 'Bearer error="invalid_token"' : 'Bearer' }
}
