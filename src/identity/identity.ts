// Defines the identity of a request: anonymous, or a user with the presented credential.
import type { User } from '../users/user.ts'

export type Identity = Anonymous | AuthenticatedUser

interface Anonymous {
  readonly kind: 'anonymous'
}

export interface AuthenticatedUser {
  readonly kind: 'user'
  readonly user: User
  readonly credential: 'access_token' | 'api_token'
  /** The session of the access token. Undefined for a token of version 0.1. */
  readonly sessionId?: string | undefined
  readonly apiTokenId?: number
}

export const anonymous: Anonymous = { kind: 'anonymous' }
