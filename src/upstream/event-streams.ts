// Recognises event streams: responses that do not end by themselves.

/** @param fields response headers, names and values in turn */
export function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() === 'content-type') return /^text\/event-stream\b/i.test(fields[i + 1] ?? '')
  }
  return false
}
