// The authentication guard: bearer token, else API key, else 401 (spec §5).

import { andThen, type Soon } from '../../async/maybe-promise.ts'
import { hashKey } from '../../identity/api-tokens/api-tokens.ts'
import type { LastUsed } from '../../identity/api-tokens/last-used.ts'
import type { KnownTokens } from '../../identity/cache/token-cache.ts'
import type { KeyOwner, KnownUsers } from '../../identity/cache/user-cache.ts'
import { anonymous, type Identity } from '../../identity/identity.ts'
import type { VerifiedToken } from '../../identity/tokens/tokens.ts'
import { rateLimited } from '../../refusals/limits.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { StorageError } from '../../storage/database.ts'
import type { Limiter } from '../../storage/rate-limiter.ts'
import { limitedBy } from '../parsing/client-address.ts'
import type { RequestHead } from '../parsing/request-head.ts'
import type { Route } from '../routing/route.ts'
import { behindScheme, type Credentials, readCredentials } from './credential.ts'
import type { Guard } from './guard.ts'

/** What is asked to find out who calls. */
export interface AskedForIdentity {
  tokens: KnownTokens
  users: Omit<KnownUsers, 'close'>
  lastUsed: Pick<LastUsed, 'note'>
  badKeys: Limiter
  /** Told of what made a key's check fail: the client only learns that it is invalid. */
  onKeyFault(fault: unknown): void
}

/** @param auth `routes[].auth` */
export type Authenticate = (auth: Route['auth']) => Guard<void, Identity>

/**
 * Throws the spec's 401s; 503 where a bearer's user could not be read (StorageError goes up); 429 past `bad_keys`.
 * The user is the stored record, never the token's claims. At once where token and user are remembered.
 */
export function createAuthenticate(parts: AskedForIdentity): Authenticate {
  function identify({ authorization, apiKey, client }: RequestHead, isOptional: boolean): Soon<Identity> {
    const remembered = recall(parts, authorization)
    if (remembered !== undefined) return byToken(parts, remembered.userId)
    const credentials = readCredentials(authorization, apiKey)
    if (isOptional && !credentials.presented) return anonymous
    if (credentials.bearer === undefined) return byKey(parts, credentials, client)
    return andThen(parts.tokens.verify(credentials.bearer), claims =>
      claims === 'invalid' ? byKey(parts, credentials, client) : byToken(parts, claims.userId),
    )
  }

  return auth => {
    if (auth === 'none') return () => anonymous
    const isOptional = auth === 'optional'
    return request =>
      andThen(identify(request.head, isOptional), identity => {
        request.identity = identity
        return identity
      })
  }
}

function recall({ tokens }: AskedForIdentity, authorization: string | undefined): VerifiedToken | undefined {
  const token = authorization === undefined ? undefined : behindScheme(authorization)
  return token === undefined ? undefined : tokens.recall(token)
}

function byToken({ users }: AskedForIdentity, userId: number): Soon<Identity> {
  return andThen(users.find(userId), user => {
    if (user === undefined) throw challenge('user_not_found', { tokenPresented: true })
    return { kind: 'user', user, by: 'access_token' }
  })
}

function byKey(parts: AskedForIdentity, credentials: Credentials, client: string): Soon<Identity> {
  if (credentials.key === undefined) throw challenge('token_invalid', credentials)
  const owner = parts.users.findOwner(hashKey(credentials.key))
  // A remembered owner; what has to be read may fail, and who it is may be nobody.
  if (owner !== undefined && !(owner instanceof Promise)) return identified(parts, owner)
  return lookUp(parts, owner, credentials, client)
}

function identified({ lastUsed }: AskedForIdentity, { user, keyId }: KeyOwner): Identity {
  lastUsed.note(keyId)
  return { kind: 'user', user, by: 'api_token', keyId }
}

async function lookUp(
  parts: AskedForIdentity,
  looking: Soon<KeyOwner | undefined>,
  credentials: Credentials,
  client: string,
): Promise<Identity> {
  const owner = await orRefused(parts, looking, credentials)
  if (owner !== undefined) return identified(parts, owner)
  const taken = await parts.badKeys.take(limitedBy(client))
  if (!taken.allowed) throw rateLimited('bad_keys', taken)
  throw challenge('token_invalid', credentials)
}

/** "Any failure while validating a key counts as an invalid key" (spec §5): 401 even where the store is away. */
async function orRefused(
  parts: AskedForIdentity,
  looking: Soon<KeyOwner | undefined>,
  credentials: Credentials,
) {
  try {
    return await looking
  } catch (fault) {
    if (!(fault instanceof StorageError)) throw fault
    parts.onKeyFault(fault)
    throw challenge('key_check_failed', credentials, { 'retry-after': '1' })
  }
}

/** RFC 6750 §3: the challenge names the error only where a token was presented. */
function challenge(
  code: 'user_not_found' | 'token_invalid' | 'key_check_failed',
  { tokenPresented }: Pick<Credentials, 'tokenPresented'>,
  headers: Record<string, string> = {},
): Refusal {
  const scheme = tokenPresented ? 'Bearer error="invalid_token"' : 'Bearer'
  return new Refusal(code, { headers: { 'www-authenticate': scheme, ...headers } })
}
