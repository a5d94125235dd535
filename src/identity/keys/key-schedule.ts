// Which of the stored keys signs when, and from when on nothing is left that one of them signed.

export interface KeyTimes {
  /** Milliseconds, as are all times here: when it was stored, and so published. */
  readonly createdAt: number
  /** `null` for one that has only verified so far. */
  readonly signsFrom: number | null
}

/**
 * From when a key is stored to when a token is signed with it. By then no replica stands by a reading of the store that
 * began before: one takes a second and a half at most, and its answer stands for another second.
 */
export const propagationDelayMs = 5_000

/** Seconds for which verifiers may keep the JWKS (CONTRACT §3). */
export const jwksMaxAgeSeconds = 300

/** From when a key is stored to when every copy of the JWKS that may still be used has it. */
const publicationDelayMs = jwksMaxAgeSeconds * 1000 + 2 * propagationDelayMs

/** How long an assertion is good (CONTRACT §6). */
export const assertionTtlMs = 60_000

/**
 * Whose turn it is to sign access and refresh tokens, which the replicas verify themselves.
 * @param keys the latest to sign first, as the store lists them
 */
export function signerAt<K extends KeyTimes>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, 0)
}

/** Whose turn it is to sign assertions: upstreams verify them with a JWKS that may be `jwksMaxAgeSeconds` old. */
export function assertionSignerAt<K extends KeyTimes>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, publicationDelayMs) ?? signerAt(keys, now)
}

function latest<K extends KeyTimes>(keys: readonly K[], now: number, minAgeMs: number): K | undefined {
  for (const key of keys) {
    if (key.signsFrom !== null && key.signsFrom <= now && key.createdAt + minAgeMs <= now) return key
  }
  return undefined
}

export interface Lifetimes {
  /** Of the tokens that live longest. */
  readonly maxTokenTtlMs: number
  /** Whether some route asks for assertions. */
  readonly usesAssertions: boolean
}

/**
 * From when on nothing is good any more that the key signed; `undefined` while no key follows it.
 * @param keys all of them, it included or not
 */
export function retirableFrom(
  key: KeyTimes,
  keys: readonly KeyTimes[],
  lifetimes: Lifetimes,
): number | undefined {
  const { signsFrom } = key
  if (signsFrom === null) return key.createdAt
  const successors = keys.filter(other => other.signsFrom !== null && other.signsFrom > signsFrom)
  if (successors.length === 0) return undefined
  const supersededAt = Math.min(...successors.map(successor => Number(successor.signsFrom)))
  const assertionsSupersededAt = Math.min(
    ...successors.map(successor =>
      Math.max(Number(successor.signsFrom), successor.createdAt + publicationDelayMs),
    ),
  )
  // A replica that hears of the follower late signs with the key a little longer.
  const tokensEnd = supersededAt + lifetimes.maxTokenTtlMs + propagationDelayMs
  return lifetimes.usesAssertions
    ? Math.max(tokensEnd, assertionsSupersededAt + assertionTtlMs + propagationDelayMs)
    : tokensEnd
}
