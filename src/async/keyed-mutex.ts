// One piece of work at a time for each user: what would wait for a row's lock waits here, and holds no connection.

export interface KeyedMutex {
  /**
   * Runs `work` when what came before it for this user has ended. Where that failed, it fails alike and is not run:
   * those that wait would else try a store that is away one after the other, each until its own time-out.
   */
  run<T>(key: number, work: () => Promise<T>): Promise<T>
}

export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<number, Promise<unknown>>()
  return {
    run(key, work) {
      const previous = tails.get(key)
      const current = previous === undefined ? work() : previous.then(work)
      tails.set(key, current)
      const removeIfLast = () => {
        if (tails.get(key) === current) tails.delete(key)
      }
      current.then(removeIfLast, removeIfLast)
      return current
    },
  }
}
