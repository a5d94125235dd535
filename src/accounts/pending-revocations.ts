// Logouts that the store could not record: queued in memory and retried until the store accepts them.
import { StorageError } from '../storage/database.ts'

export interface PendingRevocations {
  /** The number of revocations not yet stored. */
  readonly count: number
  /**
   * Queues a token's hash until its revocation is stored. A token whose signature could not be checked is queued only
   * while there is room: a flood of made-up tokens must not exhaust memory.
   */
  add(tokenHash: string, isVerified: boolean, sessionId?: string): void
  /** Whether a session has a verified token whose revocation is not known to every reader of the store yet. */
  isEnding(sessionId: string): boolean
  /**
   * Whether a refresh has to wait, so that no token survives its logout on this replica: each while the store is away,
   * and where it only refuses some of them (another program has locked their user), those of the same sessions.
   * @param sessionId of the presented token, if that tells
   */
  isHolding(sessionId: string | undefined): boolean
  /**
   * Resolves when nothing is pending.
   * @throws StorageError when they cannot be stored now; they stay queued
   */
  flush(): Promise<void>
  /** Stops retrying. Pending revocations are lost: flush first. */
  close(): void
}

interface Dependencies {
  store: { revoke(tokenHashes: readonly string[]): Promise<unknown> }
  /** Resolves when what is stored by now is visible in this process. */
  changesVisible(): Promise<void>
  /** Called for every failed attempt. */
  onError: (error: unknown) => void
}

export function createPendingRevocations({
  store,
  changesVisible,
  onError,
}: Dependencies): PendingRevocations {
  /** Each with the session of its token, if that was verified. */
  const hashes = new Map<string, string | undefined>()
  /** The sessions of these, and of those stored just now. */
  const ending = new Set<string>()
  /** The store is up, and some of them wait for others' locks. Until none is pending they are tried one by one. */
  let isBlocked = false
  let runningAttempt: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let retryDelayMs = minRetryDelayMs
  let isClosed = false

  // One attempt at a time: a store that recovers must not receive one attempt from every waiting refresh.
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
      // The others first, next time.
      for (const [hash, sessionId] of batch) hashes.delete(hash) && hashes.set(hash, sessionId)
      throw error
    }
    for (const [hash] of batch) hashes.delete(hash)
    if (hashes.size === 0) isBlocked = false
    // Not waited for: the store decides who refreshes, and what is cached here is told a moment later.
    if (ending.size > 0) void changesVisible().then(() => forgetSessions(batch))
    retryDelayMs = minRetryDelayMs
  }

  function forgetSessions(batch: readonly [hash: string, sessionId: string | undefined][]): void {
    for (const [, sessionId] of batch) if (sessionId !== undefined) ending.delete(sessionId)
  }

  // A running attempt may have started before the latest logout: repeat until none is left.
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

/** SQLSTATEs of a server that is up: serialization failure, deadlock, lock not available, statement timeout. */
const blockedStates = new Set(['40001', '40P01', '55P03', '57014'])

const minRetryDelayMs = 50
const maxRetryDelayMs = 1000
const batchSize = 1000
const maxUnverified = 100_000
