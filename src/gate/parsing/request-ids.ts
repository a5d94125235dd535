// Ids for requests whose clients sent none: told apart across all processes, and cheaper than a UUID each.

/** @param randomBytes of `node:crypto`; asked once */
export function createRequestIds(randomBytes: (size: number) => Buffer): () => string {
  // 96 bits that no other process has, then a count.
  const prefix = randomBytes(12).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

/** What of a client's making is kept as an id: it stands in logs and header fields. */
export const safeId = /^[A-Za-z0-9._:~+/=-]{1,128}$/

/** Keeps a client's own where it is safe. */
export function createRequestIdFor(
  randomBytes: (size: number) => Buffer,
): (given: string | undefined) => string {
  const make = createRequestIds(randomBytes)
  return given => (given !== undefined && safeId.test(given) ? given : make())
}
