// Decrypts the stored keys. Generates the first key if there is none, and seals keys stored in plain text.
import { isSealed, type Sealer } from '../sealer.ts'
import type { KeyStore, StoredKey } from './key-store.ts'
import { generatePrivateJwk, KeyError, readPrivateJwk, type SigningKey, withSubject } from './signing-key.ts'

export interface DecryptedKey {
  readonly row: StoredKey
  readonly key: SigningKey
}

/**
 * Returns all stored keys, sorted by `signs_from`, latest first. At least one of them is signing now.
 * @throws StorageError
 * @throws KeyError with a message for the operator if `auth.key_secret` is missing or cannot decrypt the keys
 */
export async function readStoredKeys(store: KeyStore, sealer: Sealer | undefined): Promise<DecryptedKey[]> {
  let rows = await store.all()
  if (!rows.some(signsNow)) {
    const { kid, text } = await generatePrivateJwk('ES256')
    await store.addFirst(kid, sealer?.seal(text, kid) ?? text)
    // Reads the keys again, because another replica may have stored its key first.
    rows = await store.all()
  }
  const decrypted = await decryptStoredKeys(rows, sealer)
  if (sealer === undefined) return decrypted
  for (const { kid, private_jwk: text } of rows)
    if (!isSealed(text)) await store.replaceText(kid, text, sealer.seal(text, kid))
  return decrypted
}

/** @throws KeyError under the same conditions as `readStoredKeys` */
export function decryptStoredKeys(
  rows: readonly StoredKey[],
  sealer: Sealer | undefined,
): Promise<DecryptedKey[]> {
  return Promise.all(
    rows.map(async row => {
      const text = isSealed(row.private_jwk) ? unseal(row, sealer) : row.private_jwk
      const key = await withSubject(`the stored signing key ${row.kid}`, readPrivateJwk(text, row.kid))
      return { row, key }
    }),
  )
}

function signsNow({ signs_from, read_at }: StoredKey): boolean {
  return signs_from !== null && signs_from <= read_at
}

function unseal({ kid, private_jwk: stored }: StoredKey, sealer: Sealer | undefined): string {
  if (sealer === undefined) {
    throw new KeyError(
      `auth.key_secret is not set, but the stored signing key ${kid} is encrypted: set auth.key_secret to the secret that encrypted it`,
    )
  }
  const plain = sealer.open(stored, kid)
  if (plain === undefined) {
    throw new KeyError(
      `auth.key_secret cannot decrypt the stored signing key ${kid}: if you changed the secret, set auth.key_secret_old to the previous secret`,
    )
  }
  return plain
}
