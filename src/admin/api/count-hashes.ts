// Counts how many users have a password hash of each format.
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'

const counts = terms.record({
  hashes: Type.Array(
    terms.record({
      format: terms.text(
        'The format: `argon2id`, `argon2i`, `bcrypt`, `pbkdf2_sha256`, `pbkdf2_sha512`, `scrypt` or `fbscrypt`. `none` means no password, and `other` means a hash in any other format.',
      ),
      users: terms.count('The number of users, which includes inactive users.'),
    }),
    { description: 'The formats. The format with the most users comes first.' },
  ),
})

export const countHashes = {
  method: 'GET',
  path: '/admin/v1/password-hashes',
  id: 'countHashes',
  summary: 'Counts how many users have a password hash of each format',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: { 200: { description: 'The formats with their numbers of users.', body: counts } },
  refusals: operatorRefusals,
} as const satisfies Operation

/** The time limit of the SQL statement, which reads all users. */
const timeoutMs = 5_000

export function createHashCounts({ hashCounts }: AdminDependencies): AdminEndpoint {
  return { operation: countHashes, handle: async () => ({ hashes: await hashCounts.count(timeoutMs) }) }
}
