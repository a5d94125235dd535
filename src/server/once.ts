// Runs work once, however often it is called.

/** @returns starts the work at its first call; every call receives the promise of that one run */
export function once<Words extends unknown[], T>(
  work: (...words: Words) => Promise<T>,
): (...words: Words) => Promise<T> {
  let running: Promise<T> | undefined
  return (...words) => {
    running ??= work(...words)
    return running
  }
}
