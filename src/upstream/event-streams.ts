// The event streams that are open: a drain ends them, as they would not end by themselves (CONTRACT §1, signals).

export interface EventStreams {
  /** Whether an answer with these fields is one. */
  matches(fields: readonly string[]): boolean
  /** @param end ends the stream @returns forgets it */
  add(end: () => void): () => void
  /** Ends those that are open, and from then on each as it opens. */
  endAll(): void
}

export function createEventStreams(): EventStreams {
  const open = new Set<() => void>()
  let isOver = false
  return {
    matches(fields) {
      for (let i = 0; i < fields.length; i += 2) {
        if (fields[i]?.toLowerCase() === 'content-type')
          return /^text\/event-stream\b/i.test(fields[i + 1] ?? '')
      }
      return false
    },
    add(end) {
      open.add(end)
      // Once its head is on its way.
      if (isOver) setImmediate(end)
      return () => open.delete(end)
    },
    endAll() {
      isOver = true
      for (const end of open) end()
    },
  }
}
