// Deletes what has had its time, now and then, in batches that hold up nobody.
import type { Clock } from '../clock.ts'

export interface Pruner {
  /**
   * Deletes all that there is to delete now; says how much.
   * @throws StorageError
   */
  prune(): Promise<number>
  stop(): void
}

interface Parts {
  store: {
    /** Deletes up to `limit` records, and says how many there were. */
    prune(now: Date, limit: number): Promise<number>
  }
  clock: Clock
  /** Told when a round failed; the next one comes at its time. */
  onError: (error: unknown) => void
}

/** Prunes a few seconds after its creation and every ten minutes from then on. */
export function createPruner({ store, clock, onError }: Parts): Pruner {
  let stopped = false
  let timer = setTimeout(round, firstDelay).unref()

  async function round(): Promise<void> {
    try {
      await prune()
    } catch (error) {
      onError(error)
    }
    if (!stopped) timer = setTimeout(round, interval).unref()
  }

  async function prune(): Promise<number> {
    let total = 0
    while (!stopped) {
      const deleted = await store.prune(new Date(clock.now()), batchSize)
      total += deleted
      if (deleted < batchSize) break
    }
    return total
  }

  return {
    prune,
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

const firstDelay = 5_000
const interval = 10 * 60_000
const batchSize = 1000
