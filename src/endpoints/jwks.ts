// The endpoint of the public keys.
import { jwksMaxAgeSeconds } from '../identity/keys/key-schedule.ts'
import { showKeys } from './jwks.openapi.ts'
import type { DocumentEndpoint } from './local-endpoint.ts'

export function createJwksEndpoint(jwks: () => object): DocumentEndpoint {
  return { kind: 'document', operation: showKeys, maxAgeSeconds: jwksMaxAgeSeconds, show: jwks }
}
