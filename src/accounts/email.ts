// Normalizes emails, and decides which emails can be stored.

/**
 * Trims, lower-cases and composes an email. Lower-casing ignores the locale, because a Turkish locale would change `I`
 * to a dotless `ı`.
 */
export function normalizeEmail(raw: string): string {
  const email = unnormalizedEmail(raw)
  // A text of this length is too long for an email even after it is composed. It is not composed, because this could
  // take quadratic time.
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
 * Whether the database can contain an email. Format characters are allowed, because version 0.1 also stored emails with
 * them. Some other texts are not allowed, because Postgres rejects them, for example NUL with SQLSTATE 22021.
 */
export function isFindableEmail(email: string): boolean {
  // The number of UTF-16 units is checked first, because splitting a long body into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254

/**
 * The maximum number of UTF-16 units before an email is composed. A longer text has more than `maxCodePoints` code
 * points even after it is composed. At most four code points compose to one, and each of the four has at most two
 * UTF-16 units.
 */
const maxComposedUnits = 8 * maxCodePoints
