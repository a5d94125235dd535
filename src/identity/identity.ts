// Defines the identity of a request: anonymous, or a user with the presented credential.
import type { User } from '../users/user.ts'
import type { ApiKey } from './api-keys/api-key-store.ts'

export type Identity = Anonymous | AuthenticatedUser

interface Anonymous {
  readonly kind: 'anonymous'
}

export interface AuthenticatedUser {
  readonly kind: 'user'
  readonly user: User
  /** The session of the access token. Undefined for a token of version 0.1 and for an API key. */
  readonly sessionId: string | undefined
  /** The presented API key. Undefined for an access token. */
  readonly apiKey: ApiKey | undefined
}

export const anonymous: Anonymous = { kind: 'anonymous' }

/**
 * Returns the API key of the request, for the upstream and the log. The key of `/api/v1/user/api-token` identifies
 * only its user, so it is not returned.
 */
export function namedKeyOf(identity: Identity): ApiKey | undefined {
  return identity.kind === 'anonymous' || identity.apiKey?.isApiToken ? undefined : identity.apiKey
}
