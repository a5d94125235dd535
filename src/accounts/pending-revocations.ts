// Logouts that the store could not take: kept, and tried again until it has them.

export interface PendingRevocations {
  /** How many wait to be stored. */
  readonly count: number
  /**
   * Keeps a token's hash until its revocation is stored. One that is not certain to be a token of ours is kept
   * only while there is room: a flood of made-up ones must not fill the memory.
   */
  add(tokenHash: string, isVerified: boolean): void
  /**
   * Resolves when nothing is pending. A refresh waits for it, so that no token lives on that was logged out here.
   * @throws StorageError when they cannot be stored now; they are kept
   */
  flush(): Promise<void>
  /** Stops trying. What is still pending is lost: flush first. */
  close(): void
}

interface Dependencies {
  store: { revoke(tokenHashes: readonly string[]): Promise<unknown> }
  /** Told of every try that failed. */
  onError: (error: unknown) => void
}

export function createPendingRevocations({ store, onError }: Dependencies): PendingRevocations {
  const hashes = new Set<string>()
  let runningAttempt: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let retryDelayMs = minRetryDelayMs
  let isClosed = false

  // One at a time: a store that comes back must not be met by every waiting refresh at once.
  function attempt(): Promise<void> {
    runningAttempt ??= storeBatch().finally(() => {
      runningAttempt = undefined
    })
    return runningAttempt
  }

  async function storeBatch(): Promise<void> {
    const batch: string[] = []
    for (const hash of hashes) {
      if (batch.push(hash) === batchSize) break
    }
    await store.revoke(batch)
    for (const hash of batch) hashes.delete(hash)
    retryDelayMs = minRetryDelayMs
  }

  // An attempt that was under way may have left before the latest logout: go on until none is left.
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
    add(tokenHash, isVerified) {
      if (!isVerified && hashes.size >= maxUnverified) return
      hashes.add(tokenHash)
      scheduleRetry()
    },
    flush,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

const minRetryDelayMs = 50
const maxRetryDelayMs = 1000
const batchSize = 1000
const maxUnverified = 100_000
