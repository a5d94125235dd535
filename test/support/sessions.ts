// Sessions of tests that do not sign in: tokens of one, and what a store is given of another.
import { randomUUID } from 'node:crypto'

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
