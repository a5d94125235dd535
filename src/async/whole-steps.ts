// Ends work only at whole tenths of a second after its start, so that how long it took does not show.
import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than a few statements take. */
const stepMs = 100

/**
 * Resolves or rejects as `work` does, at the first multiple of 100 ms after the call: work of different lengths takes
 * the same time, as long as none takes longer than that.
 */
export async function inWholeSteps<T>(work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  try {
    return await work()
  } finally {
    const elapsedMs = performance.now() - start
    await sleep(Math.ceil(Math.ceil(elapsedMs / stepMs) * stepMs - elapsedMs))
  }
}
