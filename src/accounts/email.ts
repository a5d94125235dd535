// Normalizes emails, and decides which emails can be stored.

/**
 * Trims and lower-cases an email, and converts it to Unicode NFC. Lower-casing ignores the locale, because a Turkish
 * locale would change `I` to a dotless `ı`.
 */
export function normalizeEmail(raw: string): string {
  const email = unnormalizedEmail(raw)
  // A text of this length is too long for an email, even in NFC. It is not converted, because the conversion could take
  // quadratic time.
  return email.length > maxComposedUnits ? email : email.normalize('NFC')
}

/** Returns the email as version 0.1 stored it, without Unicode normalization. */
export function unnormalizedEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/**
 * Returns whether an email can be registered. The email must not contain control characters, lone surrogates, or format
 * characters (for example a zero-width space).
 */
export function isStorableEmail(email: string): boolean {
  return isFindableEmail(email) && !/\p{Cf}/u.test(email)
}

/**
 * Returns whether the database can contain this email. Format characters are possible, because version 0.1 stored
 * emails with them. Texts that Postgres rejects are not possible, for example NUL (SQLSTATE 22021).
 */
export function isFindableEmail(email: string): boolean {
  // The number of UTF-16 units is checked first, because splitting a long text into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254

/**
 * The maximum number of UTF-16 units before an email is converted to NFC. A longer text has more than `maxCodePoints`
 * code points even in NFC. NFC joins at most four code points to one, and each of the four has at most two UTF-16
 * units.
 */
const maxComposedUnits = 8 * maxCodePoints
