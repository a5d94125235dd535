// A step that may have to wait, and mostly has not: promises cost a remembered request more than its guards do.

/** What is there now, or will be. */
export type Soon<T> = T | Promise<T>

/** Goes on with a value at once where it is there. */
export function andThen<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
