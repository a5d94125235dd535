// The endpoint for the public keys.
import { jwksMaxAgeSeconds } from '../identity/keys/key-schedule.ts'
import type { Operation } from '../openapi/operation.ts'
import { record, text } from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import type { DocumentEndpoint } from './local-endpoint.ts'

const member = Type.Optional(
  text('A parameter of the key. The key type determines which parameters are present.'),
)

const key = record(
  {
    kty: text('The key type.'),
    kid: text('The key ID in the header of tokens.'),
    alg: text('The signature algorithm.'),
    use: text('Always `sig`.'),
    crv: member,
    x: member,
    y: member,
    n: member,
    e: member,
  },
  { title: 'PublicKey', description: 'A public JWK (RFC 7517).' },
)

export const showKeys = {
  method: 'GET',
  path: '/.well-known/jwks.json',
  id: 'showKeys',
  summary: 'Shows the public keys that verify tokens and identity assertions',
  caller: 'anybody',
  responses: {
    200: {
      description: 'All keys that verify tokens. The response may be cached for five minutes.',
      body: record({ keys: Type.Array(key) }),
    },
  },
  refusals: { 400: ['credentials_ambiguous'] },
} as const satisfies Operation

export function createJwksEndpoint(jwks: () => object): DocumentEndpoint {
  return { kind: 'document', operation: showKeys, maxAgeSeconds: jwksMaxAgeSeconds, show: jwks }
}
