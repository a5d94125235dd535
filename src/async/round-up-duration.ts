// Rounds the duration of work up to a multiple of 100 ms, so that the duration does not reveal what the work did.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Durations are rounded up to a multiple of this step. The few database statements of a call normally take less than
 * one step.
 */
const stepMs = 100

/**
 * Settles after the work, when the time since the call is a multiple of 100 ms. So all work that takes less than 100 ms
 * seems to take 100 ms.
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
