// Measures how long the test process was blocked, so that a test can ignore delays that its gateways did not cause.

export interface EventLoop {
  /** Returns for how many milliseconds this process was blocked. `from` and `to` are values of `performance.now()`. */
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
