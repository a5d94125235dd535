// Runs one task at a time per key. If the outcome of a task also applies to waiting tasks, they get it without running.

/**
 * Runs the tasks of one key one after another. Even a thousand concurrent tasks then need only one connection. Some
 * outcomes also apply to the tasks that are still waiting, so these tasks do not run:
 *
 * - The result `gone` applies to all tasks that were already waiting when the task started. Tasks that were added later
 *   still run, because the key may have a new record by then.
 * - A shared error, for example of an unavailable store, applies to all waiting tasks.
 */
export interface CoalescingQueue<Key> {
  /** Runs `work` after the earlier tasks of the key. All tasks of one key must have results of the same type. */
  run<T>(key: Key, work: () => Promise<T>): Promise<T>
}

interface Waiting {
  begin(): void
  end(outcome: Promise<never> | 'gone'): void
}

/** @param isShared returns whether an error applies to all waiting tasks, or only to the task that failed */
export function createCoalescingQueue<Key>(isShared: (error: unknown) => boolean): CoalescingQueue<Key> {
  /** Maps each key that has a running task to its waiting tasks. */
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
