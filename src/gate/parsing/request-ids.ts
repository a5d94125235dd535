// Ids for requests that bring none: unique across all processes, and cheaper than a UUID each.

/** @param randomBytes of `node:crypto`; called once */
export function createRequestIds(randomBytes: (size: number) => Buffer): () => string {
  // 96 bits that no other process has, then a counter.
  const prefix = randomBytes(12).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

/** Which ids of clients are accepted: they appear in logs and headers. */
export const safeId = /^[A-Za-z0-9._:~+/=-]{1,128}$/

/** Uses a client's own id if it is safe. */
export function createRequestIdFor(
  randomBytes: (size: number) => Buffer,
): (given: string | undefined) => string {
  const make = createRequestIds(randomBytes)
  return given => (given !== undefined && safeId.test(given) ? given : make())
}
