// How late this process was: gateways of a test run in it, and what it delayed is not theirs to answer for.

export interface EventLoop {
  /** How long it stood still in all, in milliseconds, between two moments of `performance.now()`. */
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
      delays.reduce((sum, { at, by }) => (at > from && at - by < to ? sum + by : sum), 0),
    stop: () => clearInterval(timer),
  }
}
