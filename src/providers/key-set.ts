// Fetches the keys of an identity provider.
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../clock.ts'
import { createCachedDocument, isWithin } from './cached-document.ts'
import type { Discovery } from './discovery.ts'
import type { JsonObject } from './limited-fetch.ts'

export interface KeySet {
  /** Finds the key that the header of a token names. */
  readonly find: JWTVerifyGetKey
  readonly kids: ReadonlySet<string>
  /**
   * The algorithms that the discovery document lists. They are cached with the keys, so that the keys can be used while
   * discovery fails.
   */
  readonly algorithms: readonly string[]
}

export interface Keys {
  /**
   * Returns the keys. If no key has the ID `kid`, fetches the keys again, at most once in 30 s.
   * @throws ProviderFailure `provider_unavailable`
   */
  for(kid: string | undefined): Promise<KeySet>
}

const minuteMs = 60_000
/** The minimum time between two fetches for an unknown `kid`. Any client can send tokens with an invented `kid`. */
const unknownMs = minuteMs / 2

export function createKeys(fetchKeys: () => Promise<KeySet>, clock: Clock): Keys {
  const document = createCachedDocument({
    fetch: fetchKeys,
    clock,
    freshMs: 10 * minuteMs,
    usableMs: 60 * minuteMs,
  })
  /** The last fetch for an unknown `kid`. */
  let last: { readonly atMs: number; readonly keys: Promise<KeySet> } | undefined

  function fetchForUnknown(): Promise<KeySet> {
    if (last !== undefined && isWithin(clock, last.atMs, unknownMs)) return last.keys
    // Throws if the last fetch has just failed. Otherwise, `last` would record a fetch that is not sent.
    document.throwIfFailing()
    last = { atMs: clock.now(), keys: document.fetch() }
    return last.keys
  }

  return {
    async for(kid) {
      const keys = await document.get()
      return kid === undefined || keys.kids.has(kid) ? keys : fetchForUnknown()
    },
  }
}

/** Reads a JWK Set (RFC 7517). @returns the keys; if the JWK Set is malformed, the list of problems */
export function readKeys(json: JsonObject, { algorithms }: Discovery): KeySet | readonly string[] {
  const { keys } = json
  if (!Array.isArray(keys) || keys.length === 0) return ['it contains no keys']
  try {
    const find = createLocalJWKSet(json as unknown as JSONWebKeySet)
    const kids = keys.map(({ kid }) => kid as unknown).filter(kid => typeof kid === 'string')
    return { find, kids: new Set(kids), algorithms }
  } catch {
    return ['it is not a valid JWK Set']
  }
}
