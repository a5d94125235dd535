// Creates sessions and tokens for tests that do not log in.
import { createHash, randomUUID } from 'node:crypto'
import { importJWK, SignJWT } from 'jose'
import type { TestGateway } from './gateway.ts'

/** A session that never ends. */
export const endless = { id: '0f0e0d0c-0b0a-4908-8706-050403020100', endsAtMs: Number.POSITIVE_INFINITY }

/** Returns the data of a refresh token and of its new session, in the form that the session store expects. */
export function storedToken(tokenHash: string, expiresAt: Date) {
  return { tokenHash, expiresAt, sessionId: randomUUID() }
}

/** Returns the data of a login at this moment. */
export function signIn() {
  return { createdAt: new Date(), userAgent: null }
}

export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

/**
 * Returns a signed copy of a token, without the session ID. Version 0.1 issued tokens of this form. The signing keys in
 * the database must be unencrypted.
 */
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

/**
 * Replaces a token pair with a pair in the form of version 0.1. The stored record of the refresh token is changed to
 * this form too.
 */
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
