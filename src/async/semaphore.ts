// Lets so many tasks run at once and so many wait: costly work must not queue without end, nor slow the rest.

export interface SemaphoreOptions {
  /** Tasks in flight. */
  concurrency: number
  /** Tasks waiting for a place. */
  queue: number
  /** The longest that one of them waits, in milliseconds. */
  wait: number
}

export interface Semaphore {
  /**
   * Runs `task` when it has a place, first come first served.
   * @throws what `refuse` makes, when the queue is full or the wait is over
   */
  run<T>(task: () => Promise<T>): Promise<T>
}

/** @param refuse makes what a task is rejected with that finds no place in time */
export function createSemaphore(
  { concurrency, queue, wait }: SemaphoreOptions,
  refuse: () => Error,
): Semaphore {
  let running = 0
  const waiting = new Set<() => void>()

  async function run<T>(task: () => Promise<T>): Promise<T> {
    if (running < concurrency) running += 1
    else await waitForSlot()
    try {
      return await task()
    } finally {
      release()
    }
  }

  function waitForSlot(): Promise<void> {
    if (waiting.size >= queue) throw refuse()
    return new Promise((resolve, reject) => {
      const resume = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(resume)
        reject(refuse())
      }, wait)
      waiting.add(resume)
    })
  }

  // The place is handed on and not given back: a newcomer cannot overtake those who wait.
  function release(): void {
    const [next] = waiting
    if (next === undefined) {
      running -= 1
      return
    }
    waiting.delete(next)
    next()
  }

  return { run }
}
