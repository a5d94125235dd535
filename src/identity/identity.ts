// Who calls: nobody in particular, or a user and by which credential.
import type { User } from '../users/user.ts'

export type Identity = Anonymous | AuthenticatedUser

export interface Anonymous {
  readonly kind: 'anonymous'
}

export interface AuthenticatedUser {
  readonly kind: 'user'
  readonly user: User
  readonly credential: 'access_token' | 'api_token'
  /** The id of the API token, where that was the credential. */
  readonly apiTokenId?: number
}

export const anonymous: Anonymous = { kind: 'anonymous' }
