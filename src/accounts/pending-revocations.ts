// Logouts that the store could not take: kept, and tried again until it has them.

export interface PendingLogouts {
  /** How many wait to be stored. */
  readonly count: number
  /**
   * Keeps a token's hash until its revocation is stored. One that is not certain to be a token of ours is kept
   * only while there is room: a flood of made-up ones must not fill the memory.
   */
  add(tokenHash: string, certain: boolean): void
  /**
   * Resolves when nothing is pending. A refresh waits for it, so that no token lives on that was logged out here.
   * @throws StorageError when they cannot be stored now; they are kept
   */
  flush(): Promise<void>
  /** Stops trying. What is still pending is lost: flush first. */
  close(): void
}

interface Parts {
  store: { revoke(tokenHashes: readonly string[]): Promise<unknown> }
  /** Told of every try that failed. */
  onError: (error: unknown) => void
}

export function createPendingLogouts({ store, onError }: Parts): PendingLogouts {
  const hashes = new Set<string>()
  let attemptUnderWay: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let delay = shortestDelay
  let closed = false

  // One at a time: a store that comes back must not be met by every waiting refresh at once.
  function attempt(): Promise<void> {
    attemptUnderWay ??= storeSome().finally(() => {
      attemptUnderWay = undefined
    })
    return attemptUnderWay
  }

  async function storeSome(): Promise<void> {
    const batch: string[] = []
    for (const hash of hashes) {
      if (batch.push(hash) === batchSize) break
    }
    await store.revoke(batch)
    for (const hash of batch) hashes.delete(hash)
    delay = shortestDelay
  }

  // An attempt that was under way may have left before the latest logout: go on until none is left.
  async function flush(): Promise<void> {
    while (hashes.size > 0) await attempt()
  }

  function retryLater(): void {
    if (closed || timer !== undefined || hashes.size === 0) return
    timer = setTimeout(async () => {
      try {
        await flush()
      } catch (error) {
        onError(error)
      }
      timer = undefined
      retryLater()
    }, delay).unref()
    delay = Math.min(delay * 2, longestDelay)
  }

  return {
    get count() {
      return hashes.size
    },
    add(tokenHash, certain) {
      if (!certain && hashes.size >= uncertainLimit) return
      hashes.add(tokenHash)
      retryLater()
    },
    flush,
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}

const shortestDelay = 50
const longestDelay = 1000
const batchSize = 1000
const uncertainLimit = 100_000
