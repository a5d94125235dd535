// Requires a signed-in user for an endpoint. That is a user with the access token of an active session. An API key is
// not enough.
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { ApiTokenStore } from '../identity/api-tokens/api-token-store.ts'
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Queryable } from '../storage/database.ts'
import {
  type AuthenticatedRequest,
  type GuardedEndpoint,
  guardedEndpoint,
  guardRefusals,
} from './local-endpoint.ts'

/** @throws StorageError; Refusal `bearer_required`, `token_invalid` */
export type RequireSignedIn = (request: AuthenticatedRequest) => Promise<void>

export type SignedInEndpoint = (operation: Operation, handle: GuardedEndpoint['handle']) => GuardedEndpoint

export const signedInRefusals: Refusals = mergeRefusals(guardRefusals, { 403: ['bearer_required'] })

interface Dependencies {
  sessions: Pick<SessionStore, 'isLive'>
  apiTokens: Pick<ApiTokenStore, 'isActive'>
  clock: Clock
}

/**
 * Checks that the session of the access token has not ended, or that the API token is not revoked. This check is needed
 * because an access token stays valid until it expires, even after its session has ended.
 * @param tx a transaction that has locked the user, so that the session cannot end during the transaction
 * @throws StorageError; Refusal `token_invalid`
 */
export type RequireLiveCredential = (request: AuthenticatedRequest, tx?: Queryable) => Promise<void>

export function createRequireLiveCredential({
  sessions,
  apiTokens,
  clock,
}: Dependencies): RequireLiveCredential {
  return async ({ user, sessionId, apiTokenId }, tx) => {
    if (apiTokenId !== undefined) {
      if (!(await apiTokens.isActive(apiTokenId, tx))) throw tokenInvalid('Bearer', 'unknown')
    } else if (sessionId !== undefined) {
      const isLive = await sessions.isLive(user.id, sessionId, new Date(clock.now()), tx)
      if (!isLive) throw tokenInvalid('Bearer error="invalid_token"', 'session_ended')
    }
  }
}

function tokenInvalid(challenge: string, reason: string): Refusal {
  return new Refusal('token_invalid', { reason, headers: { 'www-authenticate': challenge } })
}

export function createRequireSignedIn(requireLiveCredential: RequireLiveCredential): RequireSignedIn {
  return async request => {
    if (request.credential === 'api_token') throw new Refusal('bearer_required')
    await requireLiveCredential(request)
  }
}

export function createSignedInEndpoint(requireSignedIn: RequireSignedIn): SignedInEndpoint {
  return (operation, handle) =>
    guardedEndpoint(operation, async request => {
      await requireSignedIn(request)
      return handle(request)
    })
}
