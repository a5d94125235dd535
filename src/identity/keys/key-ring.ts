// Holds the signing keys that a process has loaded, selects the key that signs, and builds the public JWKS.
import type { Clock } from '../../clock.ts'
import { assertionSignerAt, signerAt } from './key-schedule.ts'
import { KeyError, type PublicJwk, type SigningKey } from './signing-key.ts'
import type { DecryptedKey } from './stored-keys.ts'

export interface KeyRing {
  /** Returns the key that signs access and refresh tokens. */
  current(): SigningKey
  /** Returns the key that signs identity assertions. For some minutes after a rotation, this is the previous key. */
  forAssertions(): SigningKey
  /** Returns a loaded key without querying the store. A token is valid only while its key is loaded. */
  getLoaded(kid: string): SigningKey | undefined
  /** Returns the public keys, the signing key first (RFC 7517 §5). */
  jwks(): { keys: PublicJwk[] }
}

/** Creates a key ring from key files. The first key signs. @throws KeyError if there is no key */
export function keyRingFromFiles(keys: readonly SigningKey[]): KeyRing {
  const [first] = keys
  if (first === undefined) throw new KeyError('auth.keys is empty: add at least one key file')
  return createKeyRing(
    keys,
    () => first,
    () => first,
  )
}

/**
 * @param decrypted the decrypted keys, sorted by `signs_from`, latest first; at least one of them must be signing now
 */
export function keyRingFromStore(decrypted: readonly DecryptedKey[], clock: Clock): KeyRing {
  // Converts times from the database's clock to this process's clock, so that a replica with a wrong clock does not
  // sign too early.
  const keyTimes = decrypted.map(({ key, row: { created_at, signs_from, read_at } }) => {
    const clockOffsetMs = clock.now() - read_at.getTime()
    return {
      key,
      createdAt: created_at.getTime() + clockOffsetMs,
      signsFrom: signs_from === null ? null : signs_from.getTime() + clockOffsetMs,
    }
  })
  const [first] = keyTimes
  if (first === undefined) throw new KeyError('no signing key is stored')
  return createKeyRing(
    decrypted.map(({ key }) => key),
    () => (signerAt(keyTimes, clock.now()) ?? first).key,
    () => (assertionSignerAt(keyTimes, clock.now()) ?? first).key,
  )
}

function createKeyRing(
  keys: readonly SigningKey[],
  current: () => SigningKey,
  forAssertions: () => SigningKey,
): KeyRing {
  const byKid = new Map(keys.map(key => [key.kid, key]))
  return {
    current,
    forAssertions,
    getLoaded: kid => byKid.get(kid),
    jwks() {
      const signing = current()
      return { keys: [signing, ...keys.filter(key => key !== signing)].map(key => key.publicJwk) }
    },
  }
}
