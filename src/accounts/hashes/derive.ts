// Computes password hashes in the formats of other systems, without blocking the event loop.
import { createCipheriv, pbkdf2, type ScryptOptions, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { decodeBcryptBase64 } from './decode.ts'

export const derivePbkdf2 = promisify(pbkdf2)

const scryptAsync = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

/** The parameters of scrypt (RFC 7914 §2). */
export interface ScryptParameters {
  readonly N: number
  readonly r: number
  readonly p: number
}

export function deriveScrypt(
  password: string,
  salt: Buffer,
  length: number,
  { N, r, p }: ScryptParameters,
): Promise<Buffer> {
  // OpenSSL counts N blocks of 128·r bytes, one more block for each lane, and two blocks of working memory.
  return scryptAsync(password, salt, length, { N, r, p, maxmem: 128 * r * (N + p + 2) })
}

/** Computes a Firebase hash: the signer key, encrypted with a key that scrypt derives from the password. */
export async function deriveFirebase(
  password: string,
  salt: Buffer,
  signerKey: Buffer,
  parameters: ScryptParameters,
): Promise<Buffer> {
  const key = await deriveScrypt(password, salt, 32, parameters)
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(signerKey)
}

/** Computes the 23 bytes of a bcrypt hash. bcrypt reads at most 72 bytes of the password. */
export async function deriveBcrypt(password: string, salt: Buffer, cost: number): Promise<Buffer> {
  // The module is loaded at the first use, because most gateways have no bcrypt hash.
  const { hash } = await import('@node-rs/bcrypt')
  return decodeBcryptBase64((await hash(password, cost, salt)).slice(-31))
}
