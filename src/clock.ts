// Code that needs the time receives a clock as an argument, so that a test can set the time.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }
