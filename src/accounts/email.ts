// The normalised form in which emails are compared and stored, and the rule for which emails can be stored.

/**
 * Strips white space, lower-cases and composes (Unicode NFC). Lower case is independent of the locale: a Turkish locale
 * lower-cases `I` to a dotless `ı`, and other hosts would not find the account.
 */
export function normalizeEmail(raw: string): string {
  const email = unnormalizedEmail(raw)
  // A longer text cannot become an email, and composing it takes quadratic time.
  return email.length > maxComposedUnits ? email : email.normalize('NFC')
}

/** The form in which version 0.1 stored emails: not composed. */
export function unnormalizedEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/**
 * Whether an account can have this normalised email: it has an `@`, at most 254 code points, no control character, no
 * format character (for example a zero-width space) and no lone surrogate.
 */
export function isStorableEmail(email: string): boolean {
  return isFindableEmail(email) && !/\p{Cf}/u.test(email)
}

/**
 * Whether an account of any version can have this email: version 0.1 stored format characters too. Postgres rejects
 * other texts: NUL is SQLSTATE 22021.
 */
export function isFindableEmail(email: string): boolean {
  // Checks UTF-16 units first: splitting a long body into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254

/** One code point is composed of at most four, and each has at most two UTF-16 units. */
const maxComposedUnits = 8 * maxCodePoints
