// The only form in which a token or a key is stored: the lowercase hexadecimal SHA-256 of it (spec §2).
import { hash } from 'node:crypto'

/** A string is hashed as its UTF-8 bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}
