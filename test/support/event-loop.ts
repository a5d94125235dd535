// How late this process was: gateways of a test run in it, and what it delayed is not theirs to answer for.

export interface EventLoop {
  /** The longest that it stood still, in milliseconds, between two moments of `performance.now()`. */
  delayBetween(from: number, to: number): number
  stop(): void
}

const interval = 2

export function watchEventLoop(): EventLoop {
  let last = performance.now()
  const delays: { at: number; by: number }[] = []
  const timer = setInterval(() => {
    const now = performance.now()
    if (now - last > 2 * interval) delays.push({ at: now, by: now - last })
    last = now
  }, interval)
  return {
    delayBetween: (from, to) =>
      Math.max(0, ...delays.filter(({ at, by }) => at > from && at - by < to).map(({ by }) => by)),
    stop: () => clearInterval(timer),
  }
}
