// The normalised form in which emails are compared and stored, and the rule for which ones can be stored.

/**
 * Strips white space and lower-cases, independent of the locale: a Turkish locale lower-cases `I` to a dotless `ı`,
 * and other hosts would not find the account (spec §4, CONTRACT §3).
 */
export function normalizeEmail(raw: string): string {
  return raw.trim().toLowerCase()
}

/**
 * Whether an account can have this normalised email: it has an `@`, at most 254 code points, no control character and
 * no lone surrogate (CONTRACT §3). Postgres rejects some others: NUL is SQLSTATE 22021.
 */
export function isStorableEmail(email: string): boolean {
  // Checks UTF-16 units first: splitting a long body into code points is expensive.
  if (email.length > 2 * maxCodePoints || !email.includes('@')) return false
  return email.isWellFormed() && !/\p{Cc}/u.test(email) && Array.from(email).length <= maxCodePoints
}

const maxCodePoints = 254
