// Which of the stored keys signs when, and from when on nothing is left that one of them signed.

export interface Scheduled {
  /** Milliseconds, as are all times here: when it was stored, and so published. */
  readonly createdAt: number
  /** `null` for one that has only verified so far. */
  readonly signsFrom: number | null
}

/**
 * From when a key is stored to when a token is signed with it. By then no replica stands by a reading of the store that
 * began before: one takes a second and a half at most, and its answer stands for another second.
 */
export const untilKnown = 5_000

/** Seconds for which verifiers may keep the JWKS (CONTRACT §3). */
export const jwksMaxAge = 300

/** From when a key is stored to when every copy of the JWKS that may still be used has it. */
const untilPublished = jwksMaxAge * 1000 + 2 * untilKnown

/** How long an assertion is good (CONTRACT §6). */
export const assertionTtl = 60_000

/**
 * Whose turn it is to sign access and refresh tokens, which the replicas verify themselves.
 * @param keys the latest to sign first, as the store lists them
 */
export function signerAt<K extends Scheduled>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, 0)
}

/** Whose turn it is to sign assertions: upstreams verify them with a JWKS that may be `jwksMaxAge` old. */
export function assertionSignerAt<K extends Scheduled>(keys: readonly K[], now: number): K | undefined {
  return latest(keys, now, untilPublished) ?? signerAt(keys, now)
}

function latest<K extends Scheduled>(keys: readonly K[], now: number, age: number): K | undefined {
  for (const key of keys) {
    if (key.signsFrom !== null && key.signsFrom <= now && key.createdAt + age <= now) return key
  }
  return undefined
}

export interface Lifetimes {
  /** Of the tokens that live longest. */
  readonly tokens: number
  /** Whether some route asks for assertions. */
  readonly areAssertionsUsed: boolean
}

/**
 * From when on nothing is good any more that the key signed; `undefined` while no key follows it.
 * @param keys all of them, it included or not
 */
export function spentFrom(
  key: Scheduled,
  keys: readonly Scheduled[],
  lifetimes: Lifetimes,
): number | undefined {
  const { signsFrom } = key
  if (signsFrom === null) return key.createdAt
  const followers = keys.filter(other => other.signsFrom !== null && other.signsFrom > signsFrom)
  if (followers.length === 0) return undefined
  const takenOver = Math.min(...followers.map(follower => Number(follower.signsFrom)))
  const assertionsTakenOver = Math.min(
    ...followers.map(follower => Math.max(Number(follower.signsFrom), follower.createdAt + untilPublished)),
  )
  // A replica that hears of the follower late signs with the key a little longer.
  const tokensEnd = takenOver + lifetimes.tokens + untilKnown
  return lifetimes.areAssertionsUsed
    ? Math.max(tokensEnd, assertionsTakenOver + assertionTtl + untilKnown)
    : tokensEnd
}
