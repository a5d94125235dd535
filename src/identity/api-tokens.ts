// Personal API tokens as they arrive: from the field's value to the hash that is looked up.
import { sha256Hex } from './digest.ts'

/**
 * The hash of an `X-API-Key` value: of the bytes received, stripped of white space (CONTRACT §5).
 * @param headerValue as Node gives it, each byte a character: so it is stripped of ASCII white space alone, as
 *   0xA0, a space to `trim()`, may be a byte of a UTF-8 character
 */
export function hashKey(headerValue: string): string {
  let start = 0
  let end = headerValue.length
  while (start < end && isSpace(headerValue.charCodeAt(start))) start += 1
  while (end > start && isSpace(headerValue.charCodeAt(end - 1))) end -= 1
  return sha256Hex(Buffer.from(headerValue.slice(start, end), 'latin1'))
}

/** Tab, line feed, vertical tab, form feed, carriage return, space. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}
