// When each stored key signs, and from when on nothing that it signed is valid.

export interface KeyTimes {
  /** All times are milliseconds. When the key was stored, and so published. */
  readonly createdAt: number
  /** `null` if it has only verified so far. */
  readonly signsFrom: number | null
}

/**
 * The delay between storing a key and signing with it. By then no replica uses a read of the store that began before
 * the key was stored: a read takes 1.5 s at most, and its result is used for another second.
 */
export const propagationDelayMs = 5_000

/** How long verifiers may cache the JWKS (CONTRACT §3). */
export const jwksMaxAgeSeconds = 300

/** The delay between storing a key and its presence in every cached copy of the JWKS that may still be used. */
const publicationDelayMs = jwksMaxAgeSeconds * 1000 + 2 * propagationDelayMs

/** How long an assertion is valid (CONTRACT §6). */
export const assertionTtlMs = 60_000

/**
 * The key that signs access and refresh tokens, which the replicas verify themselves.
 * @param keys the latest to sign first, as the store lists them
 */
export function signerAt<K extends KeyTimes>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, 0)
}

/** The key that signs assertions: upstreams verify them with a JWKS that may be `jwksMaxAgeSeconds` old. */
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
  /** Lifetime of the tokens that live longest. */
  readonly maxTokenTtlMs: number
  /** Whether any route requests assertions. */
  readonly usesAssertions: boolean
}

/**
 * From when on nothing that the key signed is valid; `undefined` while no key succeeds it.
 * @param keys all keys, with or without this one
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
  // A replica that learns of the successor late keeps signing with this key a little longer.
  const tokensEnd = supersededAt + lifetimes.maxTokenTtlMs + propagationDelayMs
  return lifetimes.usesAssertions
    ? Math.max(tokensEnd, assertionsSupersededAt + assertionTtlMs + propagationDelayMs)
    : tokensEnd
}
