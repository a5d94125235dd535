// Ends work only at whole steps of time after its start, so that how long it took does not show.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Resolves or rejects as `work` does, at the first multiple of `stepMs` after the call: work of different lengths takes
 * the same time, as long as none takes longer than a step.
 */
export async function inWholeSteps<T>(stepMs: number, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  try {
    return await work()
  } finally {
    const elapsedMs = performance.now() - start
    await sleep(Math.ceil(elapsedMs / stepMs) * stepMs - elapsedMs)
  }
}
