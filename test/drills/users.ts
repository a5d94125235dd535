// Inserts many users into the database and signs an access token for each.
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { readSigningKeys } from '../../src/identity/keys/signing-keys.ts'
import { createTokens } from '../../src/identity/tokens/tokens.ts'
import type { ReplicaStage } from './replicas.ts'

export interface Users {
  /** The path of the key file, for the setting `auth.keys`. */
  readonly keys: string
  /** The access tokens of the users, in the order of the user IDs. */
  readonly tokens: string[]
}

/**
 * Creates the first users of an empty database. Their IDs start at 1.
 * @param count a multiple of 100
 * @param days the lifetime of the tokens in days
 */
export async function createUsers(
  { folder, database }: Pick<ReplicaStage, 'folder' | 'database'>,
  count: number,
  plan: 'free' | 'premium' | 'pro',
  days = 1,
): Promise<Users> {
  await database.query(
    `insert into users (email, password_hash, plan)
     select 'firstname.lastname' || i || '@example.com', '-', $2 from generate_series(1, $1) i`,
    [count, plan],
  )
  await database.query('vacuum analyze users')
  const keys = join(folder, 'key.json')
  writeFileSync(keys, (await generatePrivateJwk('ES256')).text, { mode: 0o600 })
  const tokens = createTokens({
    keys: await readSigningKeys([keys]),
    clock: Date,
    issuer: 'peage',
    audience: 'peage',
    accessTokenTtlMs: days * 86_400_000,
    refreshTokenTtlMs: days * 86_400_000,
  })
  const signed: string[] = []
  for (let id = 1; id <= count; id += 100) {
    const some = Array.from({ length: 100 }, (_, at) =>
      tokens.issueAccess(
        { id: id + at, email: `firstname.lastname${id + at}@example.com`, plan },
        { id: randomUUID(), endsAtMs: Number.POSITIVE_INFINITY },
      ),
    )
    signed.push(...(await Promise.all(some)))
  }
  return { keys, tokens: signed }
}
