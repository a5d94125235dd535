// Creates IDs for requests without an ID. The IDs are unique across all processes, and cheaper than UUIDs.

/** @param randomBytes the function of `node:crypto`; it is called only once */
export function createRequestIds(randomBytes: (size: number) => Buffer): () => string {
  // The prefix identifies the process by 96 random bits. A counter follows.
  const prefix = randomBytes(12).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}

/** The pattern for request IDs sent by clients. It is strict, because IDs appear in logs and headers. */
export const safeId = /^[A-Za-z0-9._:~+/=-]{1,128}$/

/** Creates a function that returns the client's ID if it matches `safeId`, otherwise a new ID. */
export function createRequestIdFor(
  randomBytes: (size: number) => Buffer,
): (given: string | undefined) => string {
  const make = createRequestIds(randomBytes)
  return given => (given !== undefined && safeId.test(given) ? given : make())
}
