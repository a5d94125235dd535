// Runs work once, however often it is called.

/** @returns starts the work at its first call; every call receives the promise of that one run */
export function once<Args extends unknown[], T>(
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let running: Promise<T> | undefined
  return (...args) => {
    running ??= work(...args)
    return running
  }
}
