// The one form in which an email is compared and stored, and which of them are stored at all.

/**
 * Strips white space and lower-cases, never by locale: a Turkish host would make `I` a dotless `ı`, and the
 * account would be another one on every other host (spec §4, CONTRACT §3).
 */
export function normalizeEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/**
 * Whether a normalised email can be an account's: it has an `@`, at most 254 code points, no control character
 * and no lone surrogate (CONTRACT §3). Any other would fail in the store: NUL is SQLSTATE 22021.
 */
export function isStorableEmail(email: string): boolean {
  // In UTF-16 units first, so that a long body is not spread into code points for nothing.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254
