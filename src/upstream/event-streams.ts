// Which answers are event streams: they do not end by themselves.

/** @param fields of the answer, names and values in turn */
export function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() === 'content-type') return /^text\/event-stream\b/i.test(fields[i + 1] ?? '')
  }
  return false
}
