// Runs one task at a time per key, and gives those that wait an outcome that is already known.

/**
 * A thousand tasks for one key cost one connection, and a few runs instead of one each.
 * A task waits for the previous tasks of its key. Two outcomes spare waiting tasks their run:
 * - A result `gone` is the result of all that waited when its run began. A later task may find a new thing under the key.
 * - An error that is shared, for example of an unavailable store, is the error of all that wait.
 */
export interface CoalescingQueue<Key> {
  /** All tasks of one key have results of one type. */
  run<T>(key: Key, work: () => Promise<T>): Promise<T>
}

interface Waiting {
  begin(): void
  end(outcome: Promise<never> | 'gone'): void
}

/** @param isShared whether an error concerns all that wait, and not only the task that met it */
export function createCoalescingQueue<Key>(isShared: (error: unknown) => boolean): CoalescingQueue<Key> {
  /** The waiting tasks, by the keys whose work is under way. */
  const queues = new Map<Key, Waiting[]>()

  async function runNow<T>(key: Key, queue: Waiting[], work: () => Promise<T>): Promise<T> {
    const waitedAtStart = queue.length
    try {
      const result = await work()
      if (result === 'gone') for (const each of queue.splice(0, waitedAtStart)) each.end('gone')
      return result
    } catch (error) {
      if (isShared(error)) for (const each of queue.splice(0)) each.end(Promise.reject(error))
      throw error
    } finally {
      const next = queue.shift()
      if (next === undefined) queues.delete(key)
      else next.begin()
    }
  }

  return {
    run<T>(key: Key, work: () => Promise<T>) {
      const queue = queues.get(key)
      if (queue === undefined) {
        const created: Waiting[] = []
        queues.set(key, created)
        return runNow(key, created, work)
      }
      return new Promise<T>(resolve => {
        queue.push({
          begin: () => resolve(runNow(key, queue, work)),
          end: outcome => resolve(outcome as T | Promise<never>),
        })
      })
    },
  }
}
