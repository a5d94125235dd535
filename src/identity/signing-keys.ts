// The keys that sign and verify: read from files, or made once and shared by all replicas through the database.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../clock.ts'
import type { KeyStore, StoredKey } from './key-store.ts'
import { isSealed, type Sealer } from './sealed.ts'
import {
  generatePrivateJwk,
  KeyError,
  type PublicJwk,
  readPrivateJwk,
  type SigningKey,
} from './signing-key.ts'

export interface SigningKeys {
  /** The key that signs. */
  current(): SigningKey
  /** A key in memory, without a look at the store. A token is good only as long as its key is here. */
  known(kid: string): SigningKey | undefined
  /**
   * A key by its name. An unknown name makes a replica read the stored keys again, at most once a second.
   * @throws StorageError where they cannot be read: the token may be a good one
   */
  find(kid: string): Promise<SigningKey | undefined>
  /** The public keys, the signing one first (RFC 7517 §5). */
  jwks(): { keys: PublicJwk[] }
  /**
   * Reads the stored keys again now. Files are not read again: a reload of the configuration makes a new set.
   * @throws StorageError
   * @throws KeyError
   */
  reload(): Promise<void>
}

/**
 * The keys of `auth.keys`: the first signs, all verify.
 * @throws KeyError with a sentence that names the file
 */
export async function readSigningKeys(files: readonly string[]): Promise<SigningKeys> {
  const keys: SigningKey[] = []
  for (const file of files) {
    const key = await readKeyFile(file)
    if (keys.some(other => other.kid === key.kid)) {
      throw new KeyError(`auth.keys: ${file} has the kid of a file before it (${key.kid})`)
    }
    keys.push(key)
  }
  const ring = keyRing(keys)
  return { ...ring, find: async kid => ring.known(kid), reload: async () => {} }
}

/** From files where `auth.keys` names some, else those that the replicas share in the database. */
export function openKeys(files: readonly string[], parts: StoredKeysParts): Promise<SigningKeys> {
  return files.length > 0 ? readSigningKeys(files) : openSigningKeys(parts)
}

interface StoredKeysParts {
  store: KeyStore
  /** Where `auth.key_secret` is set; keys that are stored plain are sealed at once. */
  sealer: Sealer | undefined
  clock: Clock
  /** Told where keys in the store have become unreadable; those in memory stay. */
  onError: (error: KeyError) => void
}

/**
 * The keys kept in the database, the first of them made here where there is none.
 * @throws StorageError
 * @throws KeyError with a sentence for the operator: `auth.key_secret` is missing or another one
 */
export async function openSigningKeys({
  store,
  sealer,
  clock,
  onError,
}: StoredKeysParts): Promise<SigningKeys> {
  let ring = keyRing(await readStore(store, sealer))
  let reading: Promise<void> | undefined
  let last: { at: number; failure?: unknown } | undefined

  // Of two readings that overlap, the one that began later has seen more, whichever ends first.
  let begun = 0
  let applied = 0
  async function reload(): Promise<void> {
    begun += 1
    const turn = begun
    const read = keyRing(await readStore(store, sealer))
    if (turn > applied) {
      applied = turn
      ring = read
    }
  }

  async function readAgain(): Promise<void> {
    try {
      await reload().catch((error: unknown) => {
        if (!(error instanceof KeyError)) throw error
        onError(error)
      })
      last = { at: clock.now() }
    } catch (failure) {
      last = { at: clock.now(), failure }
      throw failure
    }
  }

  // Made-up names must not become a query each. Within the second the last answer stands, a failure too: while
  // the store is away nobody can say that a token is bad.
  async function refresh(): Promise<void> {
    const age = last === undefined ? Number.POSITIVE_INFINITY : clock.now() - last.at
    if (reading === undefined && age >= 0 && age < shortestInterval) {
      if (last?.failure !== undefined) throw last.failure
      return
    }
    reading ??= readAgain().finally(() => {
      reading = undefined
    })
    await reading
  }

  return {
    current: () => ring.current(),
    known: kid => ring.known(kid),
    jwks: () => ring.jwks(),
    async find(kid) {
      if (ring.known(kid) === undefined) await refresh()
      return ring.known(kid)
    },
    reload,
  }
}

/** Milliseconds between two readings of the store for unknown names (CONTRACT §3). */
const shortestInterval = 1000

function keyRing(keys: readonly SigningKey[]) {
  const [first] = keys
  if (first === undefined) throw new KeyError('auth.keys: no key that signs')
  const byKid = new Map(keys.map(key => [key.kid, key]))
  return {
    current: () => first,
    known: (kid: string) => byKid.get(kid),
    jwks: () => ({ keys: keys.map(key => key.publicJwk) }),
  }
}

async function readKeyFile(file: string): Promise<SigningKey> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    throw new KeyError(`auth.keys: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  return withSubject(`auth.keys: ${file}`, readPrivateJwk(text))
}

async function withSubject(subject: string, reading: Promise<SigningKey>): Promise<SigningKey> {
  try {
    return await reading
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`${subject} ${error.message}`) : error
  }
}

async function readStore(store: KeyStore, sealer: Sealer | undefined): Promise<SigningKey[]> {
  let rows = await store.all()
  if (rows[0]?.is_signing !== 1) {
    const { kid, text } = await generatePrivateJwk('ES256')
    await store.addSigning(kid, sealer?.seal(text, kid) ?? text)
    // Read back: another replica's may have come first, and then ours was not stored.
    rows = await store.all()
  }
  return Promise.all(rows.map(row => readStoredKey(row, store, sealer)))
}

async function readStoredKey(
  row: StoredKey,
  store: KeyStore,
  sealer: Sealer | undefined,
): Promise<SigningKey> {
  const { kid, private_jwk: stored } = row
  const plain = isSealed(stored) ? unseal(row, sealer) : stored
  const key = await withSubject(`the stored signing key ${kid}`, readPrivateJwk(plain, kid))
  if (sealer !== undefined && plain === stored) await store.replaceText(kid, stored, sealer.seal(plain, kid))
  return key
}

function unseal({ kid, private_jwk: stored }: StoredKey, sealer: Sealer | undefined): string {
  if (sealer === undefined) {
    throw new KeyError(`auth.key_secret is not set, and the stored signing key ${kid} is encrypted under one`)
  }
  const plain = sealer.open(stored, kid)
  if (plain === undefined) {
    throw new KeyError(
      `auth.key_secret is not the secret that the stored signing key ${kid} is encrypted under`,
    )
  }
  return plain
}
