// What passwords and tokens take: hashing, signing, and the verification of a token that is not known yet.
import { randomUUID } from 'node:crypto'
import { createPasswords } from '../../build/accounts/password.js'
import { generatePrivateJwk, readPrivateJwk } from '../../build/identity/keys/signing-key.js'
import { createTokens } from '../../build/identity/tokens/tokens.js'
import { forEach, round } from './own-stores.mjs'

/** @type {import('./main.mjs').Part} */
export async function crypto({ say, table }) {
  const passwords = await createPasswords({ concurrency: 2, queue: 64, wait: 60_000 })
  const { kid, text } = await generatePrivateJwk('ES256')
  const key = await readPrivateJwk(text)
  const tokens = createTokens({
    keys: { current: () => key, getLoaded: () => key, find: async name => (name === kid ? key : undefined) },
    clock: Date,
    issuer: 'peage',
    audience: 'peage',
    accessTokenTtlMs: 900_000,
    refreshTokenTtlMs: 900_000,
  })
  const user = { id: 1_234_567, email: 'firstname.lastname@example.com', plan: 'free' }
  const session = { id: randomUUID(), endsAtMs: Number.POSITIVE_INFINITY }
  const token = await tokens.issueAccess(user, session)
  const rows = [
    ['password hashed or compared (Argon2id)', 2, 40, () => passwords.hash('correct horse battery')],
    ['token signed (ES256)', 20, 3_000, () => tokens.issueAccess(user, session)],
    ['token verified (ES256)', 20, 3_000, () => tokens.verifyAccess(token)],
  ]
  const costs = []
  for (const [name, atOnce, count, work] of rows) {
    const all = Array(count).fill(undefined)
    // Compiled by use.
    await forEach(all, atOnce, work)
    const before = process.cpuUsage()
    await forEach(all, atOnce, work)
    const { user: own, system } = process.cpuUsage(before)
    const micros = (own + system) / count
    costs.push([name, round(micros), round(1e6 / micros)])
  }
  table(['one', 'CPU µs', 'a second and core'], costs)
  say(`\nAn access token of this user has ${token.length} bytes.`)
}
