// Normalizes emails, and decides which emails can be stored.

/**
 * Trims, lower-cases and composes an email. Lower-casing ignores the locale, because a Turkish locale would change `I`
 * to a dotless `ı`.
 */
export function normalizeEmail(raw: string): string {
  const email = unnormalizedEmail(raw)
  // A longer text is too long even after it is composed, and composing it could take quadratic time.
  return email.length > maxComposedUnits ? email : email.normalize('NFC')
}

/** Returns the email as version 0.1 stored it, without Unicode composition. */
export function unnormalizedEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/**
 * Whether an email can be registered. It must not contain control characters, lone surrogates, or format characters
 * (for example a zero-width space).
 */
export function isStorableEmail(email: string): boolean {
  return isFindableEmail(email) && !/\p{Cf}/u.test(email)
}

/**
 * Whether the database can contain an email. Version 0.1 also stored emails with format characters. Postgres rejects
 * some other texts, for example NUL with SQLSTATE 22021.
 */
export function isFindableEmail(email: string): boolean {
  // The number of UTF-16 units is checked first, because splitting a long body into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254

/**
 * A longer text still has more than `maxCodePoints` code points after composing. Up to four code points compose to one,
 * and each has at most two UTF-16 units.
 */
const maxComposedUnits = 8 * maxCodePoints
