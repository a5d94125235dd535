// A value that the page shows, and that tells who shows it of a change.
import { useEffect, useState } from 'preact/hooks'

export interface Signal<T> {
  get(): T
  set(value: T): void
  /** Calls now and at each change. @returns stops that */
  subscribe(then: (value: T) => void): () => void
}

export function signal<T>(initial: T): Signal<T> {
  let current = initial
  const listeners = new Set<(value: T) => void>()
  return {
    get: () => current,
    set(value) {
      current = value
      for (const listener of listeners) listener(value)
    },
    subscribe(then) {
      listeners.add(then)
      then(current)
      return () => listeners.delete(then)
    },
  }
}

export function useSignal<T>(source: Signal<T>): T {
  const [value, setValue] = useState(source.get())
  useEffect(() => source.subscribe(setValue), [source])
  return value
}
