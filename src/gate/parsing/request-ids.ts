// Creates IDs for requests without one. They are unique across all processes, and cheaper than UUIDs.

/** @param randomBytes from `node:crypto`; called once */
export function createRequestIds(randomBytes: (size: number) => Buffer): () => string {
  // 96 random bits for the process, then a counter.
  const prefix = randomBytes(12).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

/** The client IDs that are accepted, because IDs appear in logs and headers. */
export const safeId = /^[A-Za-z0-9._:~+/=-]{1,128}$/

/** Uses the client's ID if it is safe. */
export function createRequestIdFor(
  randomBytes: (size: number) => Buffer,
): (given: string | undefined) => string {
  const make = createRequestIds(randomBytes)
  return given => (given !== undefined && safeId.test(given) ? given : make())
}
