// A step that may have to wait, and mostly has not: promises cost a remembered request more than its guards do.

/** What is there now, or will be. */
export type MaybePromise<T> = T | Promise<T>

/** Goes on with a value at once where it is there. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
