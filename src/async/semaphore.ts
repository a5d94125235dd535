// Bounds how many tasks run and how many wait: costly work must not queue without end, nor slow everything else.

export interface SemaphoreOptions {
  /** Tasks running at once. */
  concurrency: number
  /** Tasks waiting for a slot. */
  queue: number
  /** The longest a task waits, in milliseconds. */
  wait: number
}

export interface Semaphore {
  /**
   * Runs `task` when a slot is free, first come first served.
   * @throws the error from `refuse`, when the queue is full or the wait is over
   */
  run<T>(task: () => Promise<T>): Promise<T>
}

/** @param refuse creates the error for a task that gets no slot in time */
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

  // The slot passes directly to the next waiter: a new task cannot overtake those waiting.
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
