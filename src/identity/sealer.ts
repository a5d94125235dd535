// Secrets at rest: AES-256-GCM under a key derived from `auth.key_secret`; what `auth.key_secret_old` sealed is read.
import { createCipheriv, createDecipheriv, randomBytes, type ScryptOptions, scrypt } from 'node:crypto'
import type { Config } from '../config/schema/schema.ts'

export interface Sealer {
  /** @param context what the secret belongs to; it opens only with the same */
  seal(plain: string, context: string): string
  /** The secret; nothing where it was sealed under yet another secret, for another context, or was changed. */
  open(sealed: string, context: string): string | undefined
  /** Whether it is sealed under the secret that seals now, and not the one before. */
  isCurrent(sealed: string, context: string): boolean
}

/** By `auth.key_secret`, and `auth.key_secret_old` to read; nothing where the first is not set. */
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
 * Derives a key of each secret, once: it takes some 50 ms.
 * @param old opens too, and seals nothing; empty where there is none
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

// The version: another cipher or derivation gets another prefix. No JSON begins like this.
const prefix = 'sealed.v1.'
const ivBytes = 12
const tagBytes = 16

// Every replica must derive the same key from the secret alone, so the salt is the purpose and not random.
function deriveKey(secret: string): Promise<Buffer> {
  const cost: ScryptOptions = { N: 2 ** 14, r: 8, p: 1 }
  return new Promise((resolve, reject) => {
    scrypt(secret, 'peage sealed v1', 32, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
