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

interface Dependencies {
  store: {
    /** Deletes up to `limit` records, and says how many there were. */
    prune(now: Date, limit: number): Promise<number>
  }
  clock: Clock
  /** Told when a round failed; the next one comes at its time. */
  onError: (error: unknown) => void
}

/** Prunes a few seconds after its creation and every ten minutes from then on. */
export function createPruner({ store, clock, onError }: Dependencies): Pruner {
  let isStopped = false
  let timer = setTimeout(round, firstDelayMs).unref()

  async function round(): Promise<void> {
    try {
      await prune()
    } catch (error) {
      onError(error)
    }
    if (!isStopped) timer = setTimeout(round, pruneIntervalMs).unref()
  }

  async function prune(): Promise<number> {
    let total = 0
    while (!isStopped) {
      const deleted = await store.prune(new Date(clock.now()), batchSize)
      total += deleted
      if (deleted < batchSize) break
    }
    return total
  }

  return {
    prune,
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

const firstDelayMs = 5_000
const pruneIntervalMs = 10 * 60_000
const batchSize = 1000
