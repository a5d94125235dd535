// Steps that may wait but mostly need not: for a request with a cached identity, promises cost more than the guards.

export type MaybePromise<T> = T | Promise<T>

/** Calls `next` synchronously if the value is already there. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
