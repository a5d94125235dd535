// The headers that a route sets and removes (`routes[].headers`), compiled when the configuration is loaded.
import { canonicalName } from '../../config/formats/header-names.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { ResponseHeaderRules } from '../../upstream/response-headers.ts'

export interface HeaderRules {
  /** The Host for the upstream, if it is not the target's own. */
  readonly upstreamHost: string | undefined
  /** All other changes to the request's headers. */
  readonly requestRules: RequestHeaderRules | undefined
  /** Changes to the headers of the upstream's responses. */
  readonly responseRules: ResponseHeaderRules | undefined
}

export interface RequestHeaderRules {
  /** Names and values alternating. */
  readonly set: readonly string[]
  /** Canonical names, those that are set included: to some upstreams an alias is the same header. */
  readonly remove: ReadonlySet<string>
}

export function compileHeaderRules(headers: RouteConfig['headers']): HeaderRules {
  const set = Object.entries(headers?.request.set ?? {})
  const isHost = ([name]: [string, string]) => canonicalName(name) === 'host'
  return {
    upstreamHost: set.find(isHost)?.[1],
    requestRules: rulesOf(
      set.filter(field => !isHost(field)),
      headers?.request.remove,
      canonicalName,
    ),
    responseRules: rulesOf(Object.entries(headers?.response.set ?? {}), headers?.response.remove, name =>
      name.toLowerCase(),
    ),
  }
}

function rulesOf(
  set: readonly [string, string][],
  remove: readonly string[] = [],
  comparable: (name: string) => string,
): RequestHeaderRules | undefined {
  const names = new Set([...remove, ...set.map(([name]) => name)].map(comparable))
  return names.size === 0 ? undefined : { set: set.flat(), remove: names }
}
