// Writes when keys were last used, behind the request and at most once a second for each (CONTRACT §5).
import type { Clock } from '../../clock.ts'
import type { ApiTokenStore } from './api-token-store.ts'

export interface LastUsed {
  /** Notes a use now. The first is written at once, the latest of the next second at its end. Never fails. */
  note(keyId: number): void
  /** Writes what waits, and resolves when every write has ended; also where some failed. */
  flush(): Promise<void>
}

interface Parts {
  store: Pick<ApiTokenStore, 'touch'>
  clock: Clock
  /** Told of a write that failed; the key's next use writes again. */
  onError: (error: unknown) => void
}

export function createLastUsed({ store, clock, onError }: Parts): LastUsed {
  /** The keys written within the last second. */
  const recent = new Map<number, { timer: NodeJS.Timeout; unwritten: number | undefined }>()
  const writes = new Set<Promise<void>>()

  function write(keyId: number, at: number): void {
    const ended = store
      .touch(keyId, new Date(at))
      .catch(onError)
      .finally(() => writes.delete(ended))
    writes.add(ended)
    const timer = setTimeout(() => secondIsOver(keyId), interval).unref()
    recent.set(keyId, { timer, unwritten: undefined })
  }

  function secondIsOver(keyId: number): void {
    const unwritten = recent.get(keyId)?.unwritten
    recent.delete(keyId)
    if (unwritten !== undefined) write(keyId, unwritten)
  }

  return {
    note(keyId) {
      const entry = recent.get(keyId)
      if (entry === undefined) write(keyId, clock.now())
      else entry.unwritten = clock.now()
    },

    async flush() {
      for (const [keyId, { timer }] of [...recent]) {
        clearTimeout(timer)
        secondIsOver(keyId)
      }
      while (writes.size > 0) await Promise.all(writes)
    },
  }
}

/** Milliseconds. */
const interval = 1000
