// Secrets at rest: AES-256-GCM under a key derived from `auth.key_secret`.
import { createCipheriv, createDecipheriv, randomBytes, type ScryptOptions, scrypt } from 'node:crypto'

export interface Sealer {
  /** @param context what the secret belongs to; it opens only with the same */
  seal(plain: string, context: string): string
  /** The secret; nothing where it was sealed under another secret or context, or was changed. */
  open(sealed: string, context: string): string | undefined
}

export function isSealed(stored: string): boolean {
  return stored.startsWith(prefix)
}

/** Derives the key, once: it takes some 50 ms. */
export async function createSealer(secret: string): Promise<Sealer> {
  const key = await derive(secret)
  return {
    seal(plain, context) {
      const iv = randomBytes(ivLength)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return prefix + Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url')
      if (!isSealed(sealed) || bytes.length < ivLength + tagLength) return undefined
      const iv = bytes.subarray(0, ivLength)
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagLength })
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(ivLength, ivLength + tagLength))
      try {
        return (
          decipher.update(bytes.subarray(ivLength + tagLength), undefined, 'utf8') + decipher.final('utf8')
        )
      } catch {
        return undefined
      }
    },
  }
}

// The version: another cipher or derivation gets another prefix. No JSON begins like this.
const prefix = 'sealed.v1.'
const ivLength = 12
const tagLength = 16

// Every replica must derive the same key from the secret alone, so the salt is the purpose and not random.
function derive(secret: string): Promise<Buffer> {
  const cost: ScryptOptions = { N: 2 ** 14, r: 8, p: 1 }
  return new Promise((resolve, reject) => {
    scrypt(secret, 'peage sealed v1', 32, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
