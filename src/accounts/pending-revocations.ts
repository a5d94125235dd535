// Keeps logouts in memory if the store could not record them, and retries until the store accepts them.
import { StorageError } from '../storage/database.ts'

export interface PendingRevocations {
  /** The number of revocations that are not stored yet. */
  readonly count: number
  /**
   * Queues the hash of a token until the token's revocation is stored. If the signature of the token is not verified,
   * the hash is queued only while fewer than 100,000 hashes are queued. Made-up tokens therefore cannot exhaust memory.
   */
  add(tokenHash: string, isVerified: boolean, sessionId?: string): void
  /**
   * Whether the revocation of this session is still queued, or is stored but not yet visible in this process.
   * Revocations of unverified tokens are ignored.
   */
  isEnding(sessionId: string): boolean
  /**
   * Whether a refresh must wait, so that no token survives its logout on this replica. While revocations are queued
   * because the store is down, every refresh waits. If the store is up, a revocation can still fail, because another
   * program has locked the user. Then a refresh waits only if a queued revocation can concern its session.
   */
  isHolding(sessionId: string | undefined): boolean
  /**
   * Resolves when no revocation is pending.
   * @throws StorageError if the store fails; the revocations then stay queued
   */
  flush(): Promise<void>
  /** Stops retrying. Pending revocations are lost, so call `flush` first. */
  close(): void
}

interface Dependencies {
  store: { revoke(tokenHashes: readonly string[]): Promise<unknown> }
  /** Resolves when all changes stored so far are visible in this process. */
  changesVisible(): Promise<void>
  onError: (error: unknown) => void
}

export function createPendingRevocations({
  store,
  changesVisible,
  onError,
}: Dependencies): PendingRevocations {
  /**
   * The tokens to revoke. The key is the hash of a token, and the value is the session of the token. The value is
   * undefined if the token was not verified.
   */
  const hashes = new Map<string, string | undefined>()
  /** The sessions whose revocation is pending, or is stored but not visible in this process yet. */
  const ending = new Set<string>()
  /**
   * Whether the store is up, but some revocations need rows that other programs have locked. While this is true,
   * revocations are sent one by one, so that a locked row does not block other revocations.
   */
  let isBlocked = false
  let runningAttempt: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let retryDelayMs = minRetryDelayMs
  let isClosed = false

  // Refreshes that wait at the same time share one attempt. Otherwise each refresh would send an attempt to a
  // recovering store.
  function attempt(): Promise<void> {
    runningAttempt ??= storeBatch().finally(() => {
      runningAttempt = undefined
    })
    return runningAttempt
  }

  async function storeBatch(): Promise<void> {
    const batch = [...hashes].slice(0, isBlocked ? 1 : batchSize)
    try {
      await store.revoke(batch.map(([hash]) => hash))
    } catch (error) {
      isBlocked = error instanceof StorageError && blockedStates.has(error.code ?? '')
      // Moves the failed revocations to the end, so that the next attempt starts with other revocations.
      for (const [hash, sessionId] of batch) hashes.delete(hash) && hashes.set(hash, sessionId)
      throw error
    }
    for (const [hash] of batch) hashes.delete(hash)
    if (hashes.size === 0) isBlocked = false
    // There is no need to wait for `changesVisible`. Refreshes are checked in the store, which already has the change.
    if (ending.size > 0) void changesVisible().then(() => forgetSessions(batch))
    retryDelayMs = minRetryDelayMs
  }

  function forgetSessions(batch: readonly [hash: string, sessionId: string | undefined][]): void {
    for (const [, sessionId] of batch) if (sessionId !== undefined) ending.delete(sessionId)
  }

  // A running attempt may have started before the latest logout, so the loop repeats until no revocation is pending.
  async function flush(): Promise<void> {
    while (hashes.size > 0) await attempt()
  }

  function scheduleRetry(): void {
    if (isClosed || timer !== undefined || hashes.size === 0) return
    timer = setTimeout(async () => {
      try {
        await flush()
      } catch (error) {
        onError(error)
      }
      timer = undefined
      scheduleRetry()
    }, retryDelayMs).unref()
    retryDelayMs = Math.min(retryDelayMs * 2, maxRetryDelayMs)
  }

  return {
    get count() {
      return hashes.size
    },
    isEnding: sessionId => ending.has(sessionId),
    isHolding(sessionId) {
      if (hashes.size === 0 || !isBlocked) return hashes.size > 0
      return (
        sessionId === undefined || [...hashes.values()].some(one => one === undefined || one === sessionId)
      )
    },
    add(tokenHash, isVerified, sessionId) {
      if (!isVerified && hashes.size >= maxUnverified) return
      hashes.set(tokenHash, sessionId)
      if (sessionId !== undefined) ending.add(sessionId)
      scheduleRetry()
    },
    flush,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

/**
 * SQLSTATEs that only a running server returns: serialization failure, deadlock, lock not available, statement timeout.
 */
const blockedStates = new Set(['40001', '40P01', '55P03', '57014'])

const minRetryDelayMs = 50
const maxRetryDelayMs = 1000
const batchSize = 1000
const maxUnverified = 100_000
