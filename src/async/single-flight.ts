// Lets concurrent callers of one key share a single run.

export interface SingleFlight<Key, Result> {
  /** Returns the result of the key's current run. Starts a run if there is none. */
  run(key: Key): Promise<Result>
  /** Keeps later callers from sharing the key's current run. */
  forget(key: Key): void
  /** Keeps later callers from sharing the current runs. */
  forgetAll(): void
}

/**
 * Creates a single flight, so that many calls for one key occupy only one connection.
 * @param work starts a run of the key
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
