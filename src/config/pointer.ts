// JSON Pointers (RFC 6901): how ajv and the rules name a place in the file.

/** Appends one key or index. */
export function appendToPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The key that one step of a JSON Pointer stands for. */
export function unescapeKey(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
