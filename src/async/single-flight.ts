// Lets concurrent calls for the same key share a single run of the work.

export interface SingleFlight<Key, Result> {
  /** Returns the result of the key's current run. Starts a run if there is none. */
  run(key: Key): Promise<Result>
  /** Makes the next call for the key start a new run, even if a run of the key has not ended. */
  forget(key: Key): void
  /** Does the same as `forget`, for all keys. */
  forgetAll(): void
}

/**
 * Creates a single flight. Many concurrent calls for one key then occupy only one connection.
 * @param work starts a run for a key
 */
export function createSingleFlight<Key, Result>(
  work: (key: Key) => Promise<Result>,
): SingleFlight<Key, Result> {
  const inFlight = new Map<Key, Promise<Result>>()
  return {
    run(key) {
      const running = inFlight.get(key)
      if (running !== undefined) return running
      const started = work(key).finally(() => {
        if (inFlight.get(key) === started) inFlight.delete(key)
      })
      inFlight.set(key, started)
      return started
    },
    forget: key => {
      inFlight.delete(key)
    },
    forgetAll: () => inFlight.clear(),
  }
}
