// The endpoint for the public keys.
import { jwksMaxAgeSeconds } from '../identity/keys/key-schedule.ts'
import type { Operation } from '../openapi/operation.ts'
import { record, text } from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import type { DocumentEndpoint } from './local-endpoint.ts'

const member = Type.Optional(text('Of the key itself, by its type.'))

const key = record(
  {
    kty: text('The type.'),
    kid: text('As tokens name it.'),
    alg: text('What it signs with.'),
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
  summary: 'Shows the public keys that tokens and identity assertions are signed with',
  caller: 'anybody',
  responses: {
    200: {
      description: 'All that verify. It may be kept for five minutes.',
      body: record({ keys: Type.Array(key) }),
    },
  },
  refusals: { 400: ['credentials_ambiguous'] },
} as const satisfies Operation

export function createJwksEndpoint(jwks: () => object): DocumentEndpoint {
  return { kind: 'document', operation: showKeys, maxAgeSeconds: jwksMaxAgeSeconds, show: jwks }
}
