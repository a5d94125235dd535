// Measures how long the test process was blocked, so that a test does not blame its gateways for that delay.

export interface EventLoop {
  /** Returns the milliseconds for which this process was blocked between two values of `performance.now()`. */
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
