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
   * @throws the error that `refuse` creates, if the queue is full or the wait is too long
   */
  run<T>(task: () => Promise<T>): Promise<T>
  /** Runs `task` if a slot is free. @returns undefined if no slot is free */
  runIfFree<T>(task: () => Promise<T>): Promise<T | undefined>
}

/** @param refuse creates the error for a task that gets no slot in time, or that finds the queue full */
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
  /** Adds a member to the end of the line. @param refuse creates the error if the member waits longer than `waitMs` */
  join(
    waitMs: number,
    refuse: () => Error,
  ): {
    /**
     * Resolves with the share that `serve` gives to this member. Rejects with the error of `refuse` if the wait is too
     * long, or with the error that was passed to `leave` or `dismiss`.
     */
    share: Promise<T>
    leave(error: Error): void
  }
  /**
   * Gives the share to the member that has waited longest.
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
