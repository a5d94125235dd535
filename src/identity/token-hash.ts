// The only form in which tokens are stored: their lowercase hexadecimal SHA-256 (spec §2).
import { hash } from 'node:crypto'

/** A string is hashed as its UTF-8 bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}
