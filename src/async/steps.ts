// Runs long work in small steps: all at once, or in slices between which requests are served.
import { setImmediate as afterOthers } from 'node:timers/promises'

/** Yields where the work may be interrupted. */
export type Steps<T> = Generator<undefined, T>

/** How long the work runs before it yields to the event loop. */
const sliceMs = 2

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next()
    if (next.done) return next.value
  }
}

/** @throws what the work throws */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let end = performance.now() + sliceMs; ; ) {
    const next = steps.next()
    if (next.done) return next.value
    if (performance.now() < end) continue
    await afterOthers()
    end = performance.now() + sliceMs
  }
}

export function* mapSteps<T, U>(items: readonly T[], map: (item: T, index: number) => U): Steps<U[]> {
  const mapped: U[] = []
  for (const [index, item] of items.entries()) {
    mapped.push(map(item, index))
    yield
  }
  return mapped
}
