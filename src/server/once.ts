// Work that is done once, however often it is asked for.

/** @returns starts the work at its first call; every call is given what came of that */
export function once<Words extends unknown[], T>(
  work: (...words: Words) => Promise<T>,
): (...words: Words) => Promise<T> {
  let running: Promise<T> | undefined
  return (...words) => {
    running ??= work(...words)
    return running
  }
}
