// Runs long work in small steps: all at once, or in slices between which requests are served.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

/** Yields where the work may be interrupted. */
export type Steps<T> = Generator<undefined, T>

/** How long the work runs before it yields to the event loop. */
const sliceMs = 2
/** An event loop that takes this long between two slices has requests to serve. */
const busyMs = 0.2
/** Rest per slice, so that the requests that a slice and its garbage collection delayed are served before the next. */
const restPerSlice = 3

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next()
    if (next.done) return next.value
  }
}

/** @throws what the work throws */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let begun = performance.now(); ; ) {
    const next = steps.next()
    if (next.done) return next.value
    const workedMs = performance.now() - begun
    if (workedMs < sliceMs) continue
    begun = await afterOthers(workedMs)
  }
}

/** Resolves with the time when the next slice may begin. */
async function afterOthers(workedMs: number): Promise<number> {
  const begun = performance.now()
  await nextTurn()
  if (performance.now() - begun > busyMs) await sleep(workedMs * restPerSlice)
  return performance.now()
}

export function* mapSteps<T, U>(items: readonly T[], map: (item: T, index: number) => U): Steps<U[]> {
  const mapped: U[] = []
  for (const [index, item] of items.entries()) {
    mapped.push(map(item, index))
    yield
  }
  return mapped
}
