// Records when API tokens were last used, in the background and at most once a second per token.
import type { Clock } from '../../clock.ts'
import type { ApiTokenStore } from './api-token-store.ts'

export interface LastUsed {
  /**
   * Records a use of a token, and never fails. Writes the first use at once. If more uses follow within a second,
   * writes the last of them after that second.
   */
  record(apiTokenId: number): void
  /** Writes pending uses. Resolves when every write has ended, even if some failed. */
  flush(): Promise<void>
}

interface Dependencies {
  store: Pick<ApiTokenStore, 'recordUse'>
  clock: Clock
  /** Called when a write fails. The token's next use writes again. */
  onError: (error: unknown) => void
}

export function createLastUsed({ store, clock, onError }: Dependencies): LastUsed {
  /** The tokens written within the last second. */
  const recent = new Map<number, { timer: NodeJS.Timeout; unwrittenAtMs: number | undefined }>()
  const writes = new Set<Promise<void>>()

  function write(apiTokenId: number, usedAtMs: number): void {
    const written = store
      .recordUse(apiTokenId, new Date(usedAtMs))
      .catch(onError)
      .finally(() => writes.delete(written))
    writes.add(written)
    const timer = setTimeout(() => endInterval(apiTokenId), writeIntervalMs).unref()
    recent.set(apiTokenId, { timer, unwrittenAtMs: undefined })
  }

  function endInterval(apiTokenId: number): void {
    const unwrittenAtMs = recent.get(apiTokenId)?.unwrittenAtMs
    recent.delete(apiTokenId)
    if (unwrittenAtMs !== undefined) write(apiTokenId, unwrittenAtMs)
  }

  return {
    record(apiTokenId) {
      const entry = recent.get(apiTokenId)
      if (entry === undefined) write(apiTokenId, clock.now())
      else entry.unwrittenAtMs = clock.now()
    },

    async flush() {
      for (const [apiTokenId, { timer }] of [...recent]) {
        clearTimeout(timer)
        endInterval(apiTokenId)
      }
      while (writes.size > 0) await Promise.all(writes)
    },
  }
}

const writeIntervalMs = 1000
