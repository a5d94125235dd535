// The authentication guard: bearer token, else API key, else 401 (spec §5).
import type { UserStore } from '../accounts/user-store.ts'
import { StorageError } from '../backing/database.ts'
import type { Limiter } from '../backing/limiter.ts'
import type { ApiTokenStore } from '../identity/api-token-store.ts'
import { hashKey } from '../identity/api-tokens.ts'
import { anonymous, type Identity } from '../identity/identity.ts'
import type { LastUsed } from '../identity/last-used.ts'
import type { Tokens } from '../identity/tokens.ts'
import { rateLimited } from '../refusals/rate-limited.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Arrival } from './arrival.ts'
import { limitedBy } from './client-address.ts'
import { type Credentials, readCredentials } from './credential.ts'
import type { Route } from './route.ts'

interface Parts {
  tokens: Pick<Tokens, 'verifyAccess'>
  users: Pick<UserStore, 'findActiveById'>
  apiTokens: Pick<ApiTokenStore, 'findOwner'>
  lastUsed: Pick<LastUsed, 'note'>
  badKeys: Limiter
  /** Told of what made a key's check fail: the client only learns that it is invalid. */
  onKeyFault(fault: unknown): void
}

export type Authenticate = (arrival: Arrival, route: Pick<Route, 'auth'>) => Identity | Promise<Identity>

/**
 * Throws the spec's 401s; 503 where a bearer's user could not be read (StorageError goes up); 429 past `bad_keys`.
 * The user is the stored record, never the token's claims.
 */
export function createAuthenticate(parts: Parts): Authenticate {
  return (arrival, route) => {
    if (route.auth === 'none') return anonymous
    const credentials = readCredentials(arrival.authorization, arrival.apiKey)
    if (route.auth === 'optional' && !credentials.presented) return anonymous
    return whoCalls(parts, credentials, arrival.client)
  }
}

async function whoCalls(parts: Parts, credentials: Credentials, client: string): Promise<Identity> {
  return (await byToken(parts, credentials)) ?? (await byKey(parts, credentials, client))
}

async function byToken({ tokens, users }: Parts, credentials: Credentials): Promise<Identity | undefined> {
  if (credentials.bearer === undefined) return undefined
  const claims = await tokens.verifyAccess(credentials.bearer)
  if (claims === 'invalid') return undefined
  const user = await users.findActiveById(claims.userId)
  if (user === undefined) throw challenge('user_not_found', credentials)
  return { kind: 'user', user, by: 'access_token' }
}

async function byKey(parts: Parts, credentials: Credentials, client: string): Promise<Identity> {
  if (credentials.key === undefined) throw challenge('token_invalid', credentials)
  const owner = await findOwner(parts, credentials.key, credentials)
  if (owner !== undefined) {
    parts.lastUsed.note(owner.keyId)
    return { kind: 'user', user: owner.user, by: 'api_token', keyId: owner.keyId }
  }
  const taken = await parts.badKeys.take(limitedBy(client))
  if (!taken.allowed) throw rateLimited('bad_keys', taken)
  throw challenge('token_invalid', credentials)
}

/** "Any failure while validating a key counts as an invalid key" (spec §5): 401 even where the store is away. */
async function findOwner(parts: Parts, key: string, credentials: Credentials) {
  try {
    return await parts.apiTokens.findOwner(hashKey(key))
  } catch (fault) {
    if (!(fault instanceof StorageError)) throw fault
    parts.onKeyFault(fault)
    throw challenge('key_check_failed', credentials, { 'retry-after': '1' })
  }
}

/** RFC 6750 §3: the challenge names the error only where a token was presented. */
function challenge(
  code: 'user_not_found' | 'token_invalid' | 'key_check_failed',
  { tokenPresented }: Credentials,
  headers: Record<string, string> = {},
): Refusal {
  const scheme = tokenPresented ? 'Bearer error="invalid_token"' : 'Bearer'
  return new Refusal(code, { headers: { 'www-authenticate': scheme, ...headers } })
}
