// Records when API keys were last used, in the background and at most once a second per key.
import type { Clock } from '../../clock.ts'
import type { ApiKeyStore } from './api-key-store.ts'

export interface LastUsed {
  /**
   * Records a use of a key, and never fails. Writes the first use at once. If more uses follow within a second,
   * writes the last of them after that second.
   */
  record(keyId: string): void
  /** Writes pending uses. Resolves when every write has ended, even if some failed. */
  flush(): Promise<void>
}

interface Dependencies {
  store: Pick<ApiKeyStore, 'recordUse'>
  clock: Clock
  /** Called when a write fails. The key's next use writes again. */
  onError: (error: unknown) => void
}

export function createLastUsed({ store, clock, onError }: Dependencies): LastUsed {
  /** The keys written within the last second. */
  const recent = new Map<string, { timer: NodeJS.Timeout; unwrittenAtMs: number | undefined }>()
  const writes = new Set<Promise<void>>()

  function write(keyId: string, usedAtMs: number): void {
    const written = store
      .recordUse(keyId, new Date(usedAtMs))
      .catch(onError)
      .finally(() => writes.delete(written))
    writes.add(written)
    const timer = setTimeout(() => endInterval(keyId), writeIntervalMs).unref()
    recent.set(keyId, { timer, unwrittenAtMs: undefined })
  }

  function endInterval(keyId: string): void {
    const unwrittenAtMs = recent.get(keyId)?.unwrittenAtMs
    recent.delete(keyId)
    if (unwrittenAtMs !== undefined) write(keyId, unwrittenAtMs)
  }

  return {
    record(keyId) {
      const entry = recent.get(keyId)
      if (entry === undefined) write(keyId, clock.now())
      else entry.unwrittenAtMs = clock.now()
    },

    async flush() {
      for (const [keyId, { timer }] of [...recent]) {
        clearTimeout(timer)
        endInterval(keyId)
      }
      while (writes.size > 0) await Promise.all(writes)
    },
  }
}

const writeIntervalMs = 1000
