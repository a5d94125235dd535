// Provides the keys for signing and verification. They come from files, or from the database that all replicas share.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../clock.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { Sealer } from '../sealer.ts'
import { type KeyRing, keyRingFromFiles, keyRingFromStore } from './key-ring.ts'
import type { KeyStore } from './key-store.ts'
import { KeyError, readPrivateJwk, type SigningKey, withSubject } from './signing-key.ts'
import { readStoredKeys } from './stored-keys.ts'

export interface SigningKeys extends KeyRing {
  /**
   * Finds a key by its `kid`. For an unknown `kid`, the stored keys are read again, at most once a second.
   * @throws StorageError if the stored keys cannot be read; the token may be valid, so it must not be reported as
   *   invalid
   */
  find(kid: string): Promise<SigningKey | undefined>
  /**
   * Reads the stored keys again. Does not read key files, because a configuration reload creates new `SigningKeys`.
   * @throws StorageError, KeyError
   */
  reload(): Promise<void>
}

/**
 * Reads the keys from files. The first key signs, and all keys verify.
 * @throws KeyError with a message that names the file
 */
export async function readSigningKeys(files: readonly string[]): Promise<SigningKeys> {
  const ring = keyRingFromFiles(await readKeyFiles(files))
  return { ...ring, find: async kid => ring.getLoaded(kid), reload: async () => {} }
}

interface StoredKeysDependencies {
  store: KeyStore
  /** Undefined if `auth.key_secret` is not set. With a sealer, keys stored in plain text are sealed. */
  sealer: Sealer | undefined
  clock: Clock
  /** Called if keys in the store have become unreadable. The loaded keys stay in use. */
  onError: (error: KeyError) => void
}

/**
 * Reads and decrypts the keys in the database. If there is none, generates the first key.
 * @throws StorageError
 * @throws KeyError with a message for the operator if `auth.key_secret` is missing or cannot decrypt the keys
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

  // If two reads overlap, the result of the read that began later is kept, even if this read ends first.
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

  // Reads the stored keys at most once a second, because clients can invent key ids. Within that second, callers get
  // the previous result. If that read failed, this function throws its error, because a token must not be reported as
  // invalid while the store is down.
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

const minReadIntervalMs = 1000

/** @throws KeyError with a message that names the file */
export async function readKeyFiles(files: readonly string[]): Promise<SigningKey[]> {
  const keys: SigningKey[] = []
  for (const file of files) {
    const key = await readKeyFile(file)
    if (keys.some(other => other.kid === key.kid)) {
      throw new KeyError(`auth.keys: ${file} has the same kid as a previous file (${key.kid})`)
    }
    keys.push(key)
  }
  return keys
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

interface WatchDependencies {
  keys: Pick<SigningKeys, 'reload'>
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  onError: (error: KeyError) => void
}

/** Reloads the stored keys when the database reports a change, so that every replica has a new key in time. */
export function watchKeys({ keys, feed, onError }: WatchDependencies): () => void {
  let isStale = false
  let isReading = false

  async function reloadWhileStale(): Promise<void> {
    if (isReading) return
    isReading = true
    let isStoreDown = false
    // A change during the read causes another read.
    while (isStale && !isStoreDown) {
      isStale = false
      await keys.reload().catch((error: unknown) => {
        if (error instanceof KeyError) onError(error)
        else isStoreDown = true
      })
    }
    isStale ||= isStoreDown
    isReading = false
  }

  function markStale(): void {
    isStale = true
    void reloadWhileStale()
  }

  const unsubscribe = feed.subscribe(change => change === 'signing_keys' && markStale(), markStale)
  // The timer also reloads the keys when the change feed is lost or the store was down.
  const timer = setInterval(() => {
    if (isStale || !feed.isFresh()) markStale()
  }, pollIntervalMs).unref()
  return () => {
    clearInterval(timer)
    unsubscribe()
  }
}

const pollIntervalMs = 1_000
