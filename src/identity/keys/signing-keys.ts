// The keys that sign and verify: read from files, or generated once and shared by all replicas through the database.
import type { Clock } from '../../clock.ts'
import type { Sealer } from '../sealer.ts'
import { readKeyFiles } from './key-files.ts'
import { type KeyRing, keyRingFromFiles, keyRingFromStore } from './key-ring.ts'
import type { KeyStore } from './key-store.ts'
import { KeyError, type SigningKey } from './signing-key.ts'
import { readStoredKeys } from './stored-keys.ts'

export interface SigningKeys extends KeyRing {
  /**
   * A key by its `kid`. An unknown one makes a replica read the stored keys again, at most once a second.
   * @throws StorageError when they cannot be read: the token may be valid
   */
  find(kid: string): Promise<SigningKey | undefined>
  /**
   * Reads the stored keys again now. Files are not read again: a configuration reload creates a new set.
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
  const ring = keyRingFromFiles(await readKeyFiles(files))
  return { ...ring, find: async kid => ring.getLoaded(kid), reload: async () => {} }
}

interface StoredKeysDependencies {
  store: KeyStore
  /** Present when `auth.key_secret` is set; keys stored in plain text are sealed at once. */
  sealer: Sealer | undefined
  clock: Clock
  /** Called when keys in the store have become unreadable; the loaded keys stay. */
  onError: (error: KeyError) => void
}

/**
 * The keys stored in the database; the first is generated here if there is none.
 * @throws StorageError
 * @throws KeyError with a sentence for the operator: `auth.key_secret` is missing or a different one
 */
export async function openSigningKeys({
  store,
  sealer,
  clock,
  onError,
}: StoredKeysDependencies): Promise<SigningKeys> {
  const read = async () => keyRingFromStore(await readStoredKeys(store, sealer), clock)
  let ring = await read()
  let reading: Promise<void> | undefined
  let lastRead: { at: number; failure?: unknown } | undefined

  // Of two overlapping reads, the one that began later is newer, whichever ends first.
  let started = 0
  let applied = 0
  async function reload(): Promise<void> {
    started += 1
    const sequence = started
    const found = await read()
    if (sequence > applied) {
      applied = sequence
      ring = found
    }
  }

  async function reloadAndRemember(): Promise<void> {
    try {
      await reload().catch((error: unknown) => {
        if (!(error instanceof KeyError)) throw error
        onError(error)
      })
      lastRead = { at: clock.now() }
    } catch (failure) {
      lastRead = { at: clock.now(), failure }
      throw failure
    }
  }

  // Made-up key ids must not cost one query each. For a second the last result stands, even a failure: while the
  // store is down no token can be declared invalid.
  async function refresh(): Promise<void> {
    const ageMs = lastRead === undefined ? Number.POSITIVE_INFINITY : clock.now() - lastRead.at
    if (reading === undefined && ageMs >= 0 && ageMs < minReadIntervalMs) {
      if (lastRead?.failure !== undefined) throw lastRead.failure
      return
    }
    reading ??= reloadAndRemember().finally(() => {
      reading = undefined
    })
    await reading
  }

  return {
    current: () => ring.current(),
    forAssertions: () => ring.forAssertions(),
    getLoaded: kid => ring.getLoaded(kid),
    jwks: () => ring.jwks(),
    async find(kid) {
      if (ring.getLoaded(kid) === undefined) await refresh()
      return ring.getLoaded(kid)
    },
    reload,
  }
}

/** Between two reads of the store for unknown key ids (CONTRACT §3). */
const minReadIntervalMs = 1000
