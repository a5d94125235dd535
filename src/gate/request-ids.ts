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
