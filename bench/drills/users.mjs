// Many users at once, straight into the database, with an access token of each that was signed before.
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateJwk } from '../../build/identity/keys/signing-key.js'
import { readSigningKeys } from '../../build/identity/keys/signing-keys.js'
import { createTokens } from '../../build/identity/tokens/tokens.js'

/**
 * The first users of an empty database: their ids count from 1.
 * @param {{ folder: string, database: import('pg').Pool }} stage
 * @param {number} count a multiple of 100
 * @param {string} plan
 * @param {number} [days] that the tokens are good for
 * @returns {Promise<{ keys: string, tokens: string[] }>} the file for `auth.keys`; a token of each
 */
export async function createUsers({ folder, database }, count, plan, days = 1) {
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
  const signed = []
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
