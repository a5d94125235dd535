// What a route sets and removes in header fields, made ready for every request (`routes[].headers`).
import { canonicalName } from '../../config/formats/header-names.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { ResponseHeaderRules } from '../../upstream/response-headers.ts'

export interface HeaderRules {
  /** The Host that the upstream is told, where that is not its target's own. */
  readonly upstreamHost: string | undefined
  /** What else is changed in the request's fields, or nothing. */
  readonly requestRules: RequestHeaderRules | undefined
  /** What is changed in the upstream's answers, or nothing. */
  readonly responseRules: ResponseHeaderRules | undefined
}

export interface RequestHeaderRules {
  /** Names and values in turn. */
  readonly set: readonly string[]
  /** Canonical names, those that are set among them: an alias is the same field to some upstream. */
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
