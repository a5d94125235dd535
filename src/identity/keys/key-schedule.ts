// Computes when each stored key signs, and when all its signatures have expired.

export interface KeyTimes {
  /** The time when the key was stored, and therefore published. All times in this file are in milliseconds. */
  readonly createdAt: number
  /** The time when the key starts or started to sign. `null` for a key that only verifies. */
  readonly signsFrom: number | null
}

/**
 * The delay between storing a key and signing with it. After this delay, every replica has read the key from the store.
 * A read takes at most 1.5 s, and a replica uses an older result for at most another second.
 */
export const propagationDelayMs = 5_000

/** The time for which verifiers may cache the JWKS. */
export const jwksMaxAgeSeconds = 300

/** The delay between storing a key and the time when every cached copy of the JWKS contains it. */
const publicationDelayMs = jwksMaxAgeSeconds * 1000 + 2 * propagationDelayMs

export const assertionTtlMs = 60_000

/**
 * Returns the key that signs access and refresh tokens. Replicas verify these tokens with their loaded keys, so cached
 * copies of the JWKS do not matter.
 * @param keys the keys, sorted by `signsFrom`, latest first, as the store lists them
 */
export function signerAt<K extends KeyTimes>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, 0)
}

/**
 * Returns the key that signs assertions. Upstreams verify with a JWKS that may be `jwksMaxAgeSeconds` old, so a new key
 * signs assertions later than other tokens.
 */
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
  /** The longest lifetime of any token. */
  readonly maxTokenTtlMs: number
  readonly usesAssertions: boolean
}

/**
 * Returns the time from which all signatures of the key have expired. `undefined` if no other key is scheduled to sign
 * after this key.
 * @param keys all keys, with or without this key
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
  // A replica that loads the successor late signs with this key a little longer, so `propagationDelayMs` is added.
  const tokensEnd = supersededAt + lifetimes.maxTokenTtlMs + propagationDelayMs
  return lifetimes.usesAssertions
    ? Math.max(tokensEnd, assertionsSupersededAt + assertionTtlMs + propagationDelayMs)
    : tokensEnd
}
