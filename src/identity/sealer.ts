// Encrypts stored secrets with AES-256-GCM and a key derived from `auth.key_secret`. `auth.key_secret_old` is used only
// to decrypt.
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
  /** @param context the owner of the secret; the sealed text can be decrypted only with the same context */
  seal(plain: string, context: string): string
  /** Decrypts. Returns undefined if the text was altered, or was sealed with another secret or another context. */
  open(sealed: string, context: string): string | undefined
  /** Returns whether the text is sealed with the current secret, not with the old secret. */
  isCurrent(sealed: string, context: string): boolean
  /**
   * Returns keys of 32 bytes for one purpose. The first key is derived from the current secret. If there is an old
   * secret, a second key is derived from it.
   */
  keysFor(purpose: string): readonly Buffer[]
}

/** Returns undefined if `auth.key_secret` is not set. */
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
 * Derives a key from each secret once, which takes about 50 ms.
 * @param old the previous secret, used only to decrypt; empty if there is none
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

// No JSON starts with this prefix. It contains a version, so that a later release can change the cipher or the key
// derivation.
const prefix = 'sealed.v1.'
const ivBytes = 12
const tagBytes = 16

/**
 * Derives a key for one purpose (RFC 5869). An attacker who has this key cannot derive another key or decrypt sealed
 * secrets.
 */
function separate(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `peage ${purpose} v1`, 32))
}

// Every replica must derive the same key from the same secret, so the salt is a fixed text.
function deriveKey(secret: string): Promise<Buffer> {
  const cost: ScryptOptions = { N: 2 ** 14, r: 8, p: 1 }
  return new Promise((resolve, reject) => {
    scrypt(secret, 'peage sealed v1', 32, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
