// Runs one task at a time per user: work that would wait for a row lock waits here, and holds no connection.

interface KeyedMutex {
  /**
   * Runs `work` after the previous work for this key. If that failed with an error that all share, `work` fails with
   * the same error and does not run: otherwise every waiter in turn would try an unavailable store, each until its own
   * timeout.
   */
  run<T>(key: number, work: () => Promise<T>): Promise<T>
}

/** @param isShared whether an error is that of all who wait, not of the one who met it */
export function createKeyedMutex(isShared: (error: unknown) => boolean): KeyedMutex {
  const tails = new Map<number, Promise<unknown>>()
  return {
    run(key, work) {
      const previous = tails.get(key)
      const current =
        previous === undefined
          ? work()
          : previous.then(work, error => (isShared(error) ? Promise.reject(error) : work()))
      tails.set(key, current)
      const removeIfLast = () => {
        if (tails.get(key) === current) tails.delete(key)
      }
      current.then(removeIfLast, removeIfLast)
      return current
    },
  }
}
