// Hashes tokens for storage. Tokens are stored only as their lowercase hexadecimal SHA-256.
import { hash } from 'node:crypto'

/** A string is hashed as its UTF-8 bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}
