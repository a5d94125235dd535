// Rounds the duration of work up to a multiple of 100 ms, so that the duration does not reveal what the work did.
import { setTimeout as sleep } from 'node:timers/promises'

/** A few statements take less than this. */
const stepMs = 100

/** Settles at the first multiple of 100 ms after the call, which hides differences of work below 100 ms. */
export async function roundUpDuration<T>(work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  try {
    return await work()
  } finally {
    const elapsedMs = performance.now() - start
    await sleep(Math.ceil(Math.ceil(elapsedMs / stepMs) * stepMs - elapsedMs))
  }
}
