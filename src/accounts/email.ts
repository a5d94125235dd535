// Normalizes emails, and decides which emails can be stored.

/** Lower-casing does not depend on the locale. A Turkish locale would change `I` to a dotless `ı`. */
export function normalizeEmail(raw: string): string {
  const email = unnormalizedEmail(raw)
  // A longer text cannot become an email, and composing it takes quadratic time.
  return email.length > maxComposedUnits ? email : email.normalize('NFC')
}

/** Returns the form in which version 0.1 stored emails, which is not composed. */
export function unnormalizedEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/** Control and format characters (for example a zero-width space) and lone surrogates are not allowed. */
export function isStorableEmail(email: string): boolean {
  return isFindableEmail(email) && !/\p{Cf}/u.test(email)
}

/** Version 0.1 also stored format characters. Postgres rejects other texts, for example NUL with SQLSTATE 22021. */
export function isFindableEmail(email: string): boolean {
  // Checks UTF-16 units first, because splitting a long body into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254

/** At most four code points compose to one, and each has at most two UTF-16 units. */
const maxComposedUnits = 8 * maxCodePoints
