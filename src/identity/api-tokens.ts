// Personal API tokens as they arrive: from the field's value to the hash that is looked up.
import { sha256Hex } from './digest.ts'

/**
 * The hash of an `X-API-Key` value: of the bytes received, stripped of white space (CONTRACT §5).
 * @param headerValue as Node gives it, each byte a character
 */
export function hashKey(headerValue: string): string {
  return sha256Hex(Buffer.from(stripSpace(headerValue), 'latin1'))
}

/**
 * Without ASCII white space at its ends; not `trim()`, to which 0xA0 is a space, as that may be a byte of a UTF-8
 * character. And no expression: 15 KB of spaces within a value kept one busy for 150 ms.
 */
export function stripSpace(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start += 1
  while (end > start && isSpace(value.charCodeAt(end - 1))) end -= 1
  return value.slice(start, end)
}

/** Tab, line feed, vertical tab, form feed, carriage return, space. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}
