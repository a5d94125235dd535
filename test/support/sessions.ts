// Sessions of tests that do not sign in: tokens of one, and what a store is given of another.
import { createHash, randomUUID } from 'node:crypto'
import { importJWK, SignJWT } from 'jose'
import type { TestGateway } from './gateway.ts'

/** One without an end. */
export const endless = { id: '0f0e0d0c-0b0a-4908-8706-050403020100', endsAtMs: Number.POSITIVE_INFINITY }

/** A refresh token of a session of its own, for the store. */
export function storedToken(tokenHash: string, expiresAt: Date) {
  return { tokenHash, expiresAt, sessionId: randomUUID() }
}

/** Of a sign-in of just now. */
export function signIn() {
  return { createdAt: new Date(), userAgent: null }
}

export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

/** The same token as 0.1 signs it: it names no session. The gateway's keys must be in the database, unsealed. */
export async function withoutSession(gateway: TestGateway, token: string): Promise<string> {
  const [key] = await gateway.sql<{ kid: string; private_jwk: string }>(
    'select kid, private_jwk from signing_keys order by signs_from desc nulls last limit 1',
  )
  if (key === undefined) throw new Error('no signing key')
  const { typ } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
  const { sid: _, ...claims } = claimsOf(token)
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ, kid: key.kid })
    .sign(await importJWK(JSON.parse(key.private_jwk), 'ES256'))
}

/** A pair as 0.1 issues it, its record too, in the place of one of this version. */
export async function pairOf01(
  gateway: TestGateway,
  { access, refresh }: { access: string; refresh: string },
) {
  const old = {
    access: await withoutSession(gateway, access),
    refresh: await withoutSession(gateway, refresh),
  }
  await gateway.sql(
    `update refresh_tokens set token_hash = $2, session_id = null, session_created_at = null, user_agent = null
      where token_hash = $1`,
    [refresh, old.refresh].map(token => createHash('sha256').update(token).digest('hex')),
  )
  return old
}
