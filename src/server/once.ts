// Runs work at most once.

/**
 * @returns a function that runs the work only once. The first call starts the work. Every call returns the promise of
 *   this run.
 */
export function once<Args extends unknown[], T>(
  work: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let running: Promise<T> | undefined
  return (...args) => {
    running ??= work(...args)
    return running
  }
}
