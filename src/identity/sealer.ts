// Encrypts secrets at rest: AES-256-GCM, key derived from `auth.key_secret`; `auth.key_secret_old` only decrypts.
import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  randomBytes,
  type ScryptOptions,
  scrypt,
} from 'node:crypto'
import type { Config } from '../config/sections/schema.ts'

export interface Sealer {
  /** @param context the owner of the secret; it opens only with the same context */
  seal(plain: string, context: string): string
  /** The plain text; undefined if sealed under another secret or for another context, or altered. */
  open(sealed: string, context: string): string | undefined
  /** Whether it is sealed under the current secret, not the old one. */
  isCurrent(sealed: string, context: string): boolean
  /** Keys of 32 bytes for one purpose alone: the current secret's, then the old one's if there is one. */
  keysFor(purpose: string): readonly Buffer[]
}

/** Seals with `auth.key_secret`, also opens with `auth.key_secret_old`; undefined if the first is not set. */
export async function openSealer({
  key_secret: secret,
  key_secret_old: old,
}: Pick<Config['auth'], 'key_secret' | 'key_secret_old'>): Promise<Sealer | undefined> {
  return secret === '' ? undefined : createSealer(secret, old)
}

export function isSealed(stored: string): boolean {
  return stored.startsWith(prefix)
}

/**
 * Derives a key from each secret, once: this takes some 50 ms.
 * @param old opens too, and seals nothing; empty: none
 */
export async function createSealer(secret: string, old = ''): Promise<Sealer> {
  const key = await deriveKey(secret)
  const oldKey = old === '' ? undefined : await deriveKey(old)
  return {
    seal(plain, context) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return prefix + Buffer.concat([iv, cipher.getAuthTag(), ciphertext]).toString('base64url')
    },
    open: (sealed, context) => unseal(key, sealed, context) ?? (oldKey && unseal(oldKey, sealed, context)),
    isCurrent: (sealed, context) => unseal(key, sealed, context) !== undefined,
    keysFor: purpose => [key, ...(oldKey === undefined ? [] : [oldKey])].map(one => separate(one, purpose)),
  }
}

function unseal(key: Buffer, sealed: string, context: string): string | undefined {
  const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url')
  if (!isSealed(sealed) || bytes.length < ivBytes + tagBytes) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
    authTagLength: tagBytes,
  })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
  try {
    return decipher.update(bytes.subarray(ivBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return undefined
  }
}

// The version: another cipher or key derivation gets another prefix. No JSON begins like this.
const prefix = 'sealed.v1.'
const ivBytes = 12
const tagBytes = 16

/** RFC 5869: whoever has the key of one purpose can derive no other, nor open what is sealed. */
function separate(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `peage ${purpose} v1`, 32))
}

// Every replica must derive the same key from the secret alone, so the salt is a fixed purpose string.
function deriveKey(secret: string): Promise<Buffer> {
  const cost: ScryptOptions = { N: 2 ** 14, r: 8, p: 1 }
  return new Promise((resolve, reject) => {
    scrypt(secret, 'peage sealed v1', 32, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
