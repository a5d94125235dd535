// Chains steps that are usually synchronous, without a promise per step. For a request with a cached identity, promises
// would take more time than the guards themselves.

export type MaybePromise<T> = T | Promise<T>

/** Calls `next` synchronously if the value is not a promise. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
