// JSON Pointers (RFC 6901): how ajv and the rules name a place in the file.

/** Appends one key or index to a JSON Pointer (RFC 6901). */
export function appendToPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** One step of a JSON Pointer as the key that it is. */
export function unescapeKey(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
