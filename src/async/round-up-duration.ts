// Rounds the duration of work up to a multiple of 100 ms, so that the duration does not show what the work did.
import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than a few statements take. */
const stepMs = 100

/**
 * Resolves or rejects as `work` does, at the first multiple of 100 ms after the call. Different work takes the same time,
 * as long as none takes longer than 100 ms.
 */
export async function roundUpDuration<T>(work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  try {
    return await work()
  } finally {
    const elapsedMs = performance.now() - start
    await sleep(Math.ceil(Math.ceil(elapsedMs / stepMs) * stepMs - elapsedMs))
  }
}
