// Generates API keys, and hashes presented keys for the lookup.
import { crc32 } from 'node:zlib'
import { sha256Hex } from '../token-hash.ts'

export type RandomBytes = (size: number) => Uint8Array

/**
 * Returns a new API key: `peage_`, 30 random base62 characters (178 bits), and a checksum of 6 base62 digits. The
 * checksum is the CRC-32 of the 30 characters in ASCII, zero-padded, most significant digit first. The base62 digits
 * are `0-9A-Za-z` in this order.
 */
export function makeApiKey(randomBytes: RandomBytes): string {
  const random = randomBase62(30, randomBytes)
  return `peage_${random}${base62(crc32(Buffer.from(random, 'ascii')), 6)}`
}

/** @param headerValue the value of `X-API-Key` as Node decodes it, with one character per byte */
export function hashApiKey(headerValue: string): string {
  return sha256Hex(Buffer.from(stripSpace(headerValue), 'latin1'))
}

/**
 * Strips ASCII white space from both ends. `trim()` would also strip 0xA0, which may be a byte of a UTF-8 character. A
 * loop is used, because a regular expression took 150 ms for 15 KB of spaces inside a value.
 */
export function stripSpace(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start += 1
  while (end > start && isSpace(value.charCodeAt(end - 1))) end -= 1
  return value.slice(start, end)
}

/**
 * Returns whether the character with this code is a tab, line feed, vertical tab, form feed, carriage return or space.
 */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}

const base62Digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Skips bytes from 248 to 255. Their remainders would make the digits `0` to `7` more frequent than the others. */
function randomBase62(length: number, randomBytes: RandomBytes): string {
  const unbiasedLimit = 256 - (256 % base62Digits.length)
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length))
      if (byte < unbiasedLimit) text += base62Digits[byte % base62Digits.length]
  }
  return text
}

function base62(number: number, width: number): string {
  let text = ''
  for (let remaining = number; remaining > 0; remaining = Math.floor(remaining / base62Digits.length)) {
    text = base62Digits[remaining % base62Digits.length] + text
  }
  return text.padStart(width, '0')
}
