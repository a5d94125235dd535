// Runs work at most once.

/** @returns a function that starts the work at its first call; every call returns the promise of that run */
export function once<Args extends unknown[], T>(
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let running: Promise<T> | undefined
  return (...args) => {
    running ??= work(...args)
    return running
  }
}
