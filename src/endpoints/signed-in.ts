// Creates endpoints that require a signed-in user. A signed-in user has the access token of an active session. An API
// key is not enough.
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { ApiKeyStore } from '../identity/api-keys/api-key-store.ts'
import type { Operation } from '../openapi/operation.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Queryable } from '../storage/database.ts'
import { type AuthenticatedRequest, type GuardedEndpoint, guardedEndpoint } from './local-endpoint.ts'

export type SignedInEndpoint = (operation: Operation, handle: GuardedEndpoint['handle']) => GuardedEndpoint

interface Dependencies {
  sessions: Pick<SessionStore, 'isLive'>
  apiKeys: Pick<ApiKeyStore, 'findActiveByIds'>
  clock: Clock
}

/**
 * Checks that the session of the access token has not ended, or that the API key is not revoked. This check is needed
 * because an access token stays valid until it expires, even after its session has ended.
 * @param tx a transaction that has locked the row of the user, so that the session cannot end during the transaction
 * @throws StorageError; Refusal `token_invalid`
 */
export type RequireLiveCredential = (request: AuthenticatedRequest, tx?: Queryable) => Promise<void>

export function createRequireLiveCredential({
  sessions,
  apiKeys,
  clock,
}: Dependencies): RequireLiveCredential {
  return async ({ user, sessionId, apiKey }, tx) => {
    if (apiKey !== undefined) {
      const active = await apiKeys.findActiveByIds([apiKey.id], tx)
      if (!active.has(apiKey.id)) throw tokenInvalid('Bearer', 'unknown')
    } else if (sessionId !== undefined) {
      const isLive = await sessions.isLive(user.id, sessionId, new Date(clock.now()), tx)
      if (!isLive) throw tokenInvalid('Bearer error="invalid_token"', 'session_ended')
    }
  }
}

function tokenInvalid(challenge: string, reason: string): Refusal {
  return new Refusal('token_invalid', { reason, headers: { 'www-authenticate': challenge } })
}

export function createSignedInEndpoint(requireLiveCredential: RequireLiveCredential): SignedInEndpoint {
  return (operation, handle) =>
    guardedEndpoint(operation, { keys: 'none' }, async request => {
      await requireLiveCredential(request)
      return handle(request)
    })
}
