// The identity behind a request: anonymous, or a user and the credential that was presented.
import type { User } from '../users/user.ts'

export type Identity = Anonymous | AuthenticatedUser

interface Anonymous {
  readonly kind: 'anonymous'
}

export interface AuthenticatedUser {
  readonly kind: 'user'
  readonly user: User
  readonly credential: 'access_token' | 'api_token'
  /** The session of the access token; undefined for a token of 0.1. */
  readonly sessionId?: string | undefined
  /** The id of the API token, if that was the credential. */
  readonly apiTokenId?: number
}

export const anonymous: Anonymous = { kind: 'anonymous' }
