// Fetches the keys of an identity provider.
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../clock.ts'
import { createCachedDocument, isWithin } from './cached-document.ts'
import type { Discovery } from './discovery.ts'
import type { JsonObject } from './limited-fetch.ts'

export interface KeySet {
  /** Finds the key of a token's header. */
  readonly find: JWTVerifyGetKey
  readonly kids: ReadonlySet<string>
  /** The algorithms of discovery. They are cached with the keys, so that the keys work while discovery fails. */
  readonly algorithms: readonly string[]
}

export interface Keys {
  /**
   * Returns the keys. Fetches them again if the name of the key is unknown, at most once in 30 s.
   * @throws ProviderFailure `provider_unavailable`
   */
  for(kid: string | undefined): Promise<KeySet>
}

const minuteMs = 60_000
/** The minimum time between two fetches for unknown names. Any client can send tokens with an unknown name. */
const unknownMs = minuteMs / 2

export function createKeys(fetchKeys: () => Promise<KeySet>, clock: Clock): Keys {
  const document = createCachedDocument({
    fetch: fetchKeys,
    clock,
    freshMs: 10 * minuteMs,
    usableMs: 60 * minuteMs,
  })
  /** The last fetch for an unknown name. */
  let last: { readonly atMs: number; readonly keys: Promise<KeySet> } | undefined

  function fetchForUnknown(): Promise<KeySet> {
    if (last !== undefined && isWithin(clock, last.atMs, unknownMs)) return last.keys
    // Without this check, a call in the pause after a failure would count as a fetch.
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

/** Reads a JWK Set (RFC 7517). @returns the problems, if it is malformed */
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
