// Limits how many tasks run at once, how many wait, and how long they wait.

export interface SemaphoreOptions {
  concurrency: number
  /** The maximum number of waiting tasks. */
  queue: number
  /** The maximum wait in milliseconds. */
  wait: number
}

interface Semaphore {
  /**
   * Runs `task` when a slot is free, first come first served.
   * @throws the error of `refuse` if the queue is full or the wait is too long
   */
  run<T>(task: () => Promise<T>): Promise<T>
  /** Runs `task` if a slot is free. @returns undefined if no slot is free */
  runIfFree<T>(task: () => Promise<T>): Promise<T | undefined>
}

/** @param refuse a function that creates the error for a task that gets no slot in time */
export function createSemaphore(
  { concurrency, queue, wait }: SemaphoreOptions,
  refuse: () => Error,
): Semaphore {
  let running = 0
  const waiting = createWaitingLine<void>()

  async function runInSlot<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task()
    } finally {
      if (!waiting.serve()) running -= 1
    }
  }

  return {
    async run(task) {
      if (running < concurrency) running += 1
      else if (waiting.length() < queue) await waiting.join(wait, refuse).share
      else throw refuse()
      return runInSlot(task)
    },
    async runIfFree(task) {
      if (running >= concurrency) return undefined
      running += 1
      return runInSlot(task)
    },
  }
}

export interface WaitingLine<T> {
  length(): number
  /** @param refuse a function that creates the error for a member that gets no share within `waitMs` */
  join(
    waitMs: number,
    refuse: () => Error,
  ): {
    /**
     * The promise of a share. If the wait is too long, it rejects with the error of `refuse`. After `leave`, it rejects
     * with the error that was passed to `leave`.
     */
    share: Promise<T>
    leave(error: Error): void
  }
  /**
   * Gives the share to the member that has waited longest, so that no later member gets it first.
   * @returns false if no member waits
   */
  serve(share: T): boolean
  /** Removes all waiting members. Their promises reject with this error. */
  dismiss(error: Error): void
}

export function createWaitingLine<T>(): WaitingLine<T> {
  const line = new Map<(share: T) => void, (error: Error) => void>()
  return {
    length: () => line.size,
    join(waitMs, refuse) {
      let leave: (error: Error) => void = () => {}
      const share = new Promise<T>((resolve, reject) => {
        const take = (served: T) => {
          clearTimeout(timer)
          line.delete(take)
          resolve(served)
        }
        leave = error => {
          clearTimeout(timer)
          if (line.delete(take)) reject(error)
        }
        const timer = setTimeout(() => leave(refuse()), waitMs)
        line.set(take, leave)
      })
      return { share, leave }
    },
    serve(share) {
      const [take] = line.keys()
      take?.(share)
      return take !== undefined
    },
    dismiss(error) {
      for (const leave of line.values()) leave(error)
    },
  }
}
