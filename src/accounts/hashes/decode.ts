// Decodes the variants of base64 that password hashes use.

/**
 * Decodes base64 with or without padding. With `passlib`, a `.` means `+`. With `firebase`, the URL-safe alphabet is
 * also accepted.
 * @returns undefined if the text is not base64
 */
export function decodeBase64(text: string, alphabet: 'passlib' | 'firebase'): Buffer | undefined {
  const digits = text.replace(/={1,2}$/, '')
  const isPadded = digits.length < text.length
  const isWhole = isPadded ? text.length % 4 === 0 : digits.length % 4 !== 1
  if (!isWhole || !alphabets[alphabet].test(digits)) return undefined
  return Buffer.from(digits.replaceAll('.', '+'), 'base64')
}

const alphabets = { passlib: /^[A-Za-z0-9+/.]*$/, firebase: /^[A-Za-z0-9+/_-]*$/ }

/** Decodes bcrypt's base64, which has the characters in another order. The text must contain only these characters. */
export function decodeBcryptBase64(text: string): Buffer {
  return Buffer.from(
    text.replace(/./g, digit => standardDigits[bcryptDigits.indexOf(digit)] ?? ''),
    'base64',
  )
}

const bcryptDigits = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const standardDigits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
