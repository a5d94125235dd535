// Deletes expired records periodically, in small batches that do not block other statements for long.
import type { Clock } from '../clock.ts'

interface Pruner {
  /** Deletes everything that is expired now, and returns the number of deleted records. @throws StorageError */
  prune(): Promise<number>
  stop(): void
}

interface Dependencies {
  /** Deletes up to `limit` records. @returns how many were deleted */
  pruneBatch(now: Date, limit: number): Promise<number>
  clock: Clock
  /** Called when a round fails. The next round runs at its regular time. */
  onError: (error: unknown) => void
}

/** Prunes a few seconds after its creation, and then every ten minutes. */
export function createPruner({ pruneBatch, clock, onError }: Dependencies): Pruner {
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
      const deleted = await pruneBatch(new Date(clock.now()), batchSize)
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
