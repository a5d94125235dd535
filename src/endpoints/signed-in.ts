// "Signed in": an access token whose session lives; an API key is not a person (CONTRACT §12).
import type { SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Queryable } from '../storage/database.ts'
import {
  type AuthenticatedRequest,
  type EndpointResponse,
  type GuardedEndpoint,
  guardRefusals,
} from './endpoint.ts'

/**
 * Lets a request through whose caller is signed in.
 * @throws Refusal `bearer_required`, `token_invalid`
 * @throws StorageError
 */
export type RequireSignedIn = (request: AuthenticatedRequest) => Promise<void>

/** An endpoint for callers who are signed in. */
export type SignedInEndpoint = (
  operation: Operation,
  handle: (request: AuthenticatedRequest) => Promise<EndpointResponse>,
) => GuardedEndpoint

export const signedInRefusals: Refusals = mergeRefusals(guardRefusals, { 403: ['bearer_required'] })

interface Dependencies {
  sessions: Pick<SessionStore, 'isLive'>
  clock: Clock
}

/**
 * Lets a request through unless its access token is of a session that has ended, as such a token is until it expires.
 * @param tx a transaction that has locked the user: what ends the session then comes before or after all of it
 * @throws Refusal `token_invalid`
 * @throws StorageError
 */
export type RequireLiveSession = (request: AuthenticatedRequest, tx?: Queryable) => Promise<void>

export function createRequireLiveSession({ sessions, clock }: Dependencies): RequireLiveSession {
  return async ({ user, sessionId }, tx) => {
    if (sessionId === undefined) return
    if (await sessions.isLive(user.id, sessionId, new Date(clock.now()), tx)) return
    throw new Refusal('token_invalid', { headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
  }
}

export function createRequireSignedIn(requireLiveSession: RequireLiveSession): RequireSignedIn {
  return async request => {
    if (request.credential === 'api_token') throw new Refusal('bearer_required')
    await requireLiveSession(request)
  }
}

export function createSignedInEndpoint(requireSignedIn: RequireSignedIn): SignedInEndpoint {
  return (operation, handle) => ({
    kind: 'guarded',
    operation,
    plans: undefined,
    async handle(request) {
      await requireSignedIn(request)
      return handle(request)
    },
  })
}
