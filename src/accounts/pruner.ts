// Deletes refresh tokens that have expired, now and then, in batches that hold up nobody.
import type { Clock } from '../clock.ts'
import type { SessionStore } from './session-store.ts'

export interface Pruner {
  /**
   * Deletes every record past its `expires_at`, never one before it; says how many.
   * @throws StorageError
   */
  prune(): Promise<number>
  stop(): void
}

interface Parts {
  store: Pick<SessionStore, 'prune'>
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
