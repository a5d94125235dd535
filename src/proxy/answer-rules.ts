// Header changes to an upstream's response: the route's rules, then the headers the gateway adds to every response.

import { replacedHeaders } from '../gate/routing/cors.ts'
import type { Route } from '../gate/routing/route.ts'
import type { ResponseHeaderRules } from '../upstream/response-headers.ts'

/**
 * @param fields CORS and rate-limit headers for this request
 * @param isCors whether CORS is among them: CORS headers of the upstream and of the route's rules are then dropped
 */
export function responseRulesFor(
  route: Route,
  fields: Readonly<Record<string, string>> | undefined,
  isCors: boolean,
): ResponseHeaderRules | undefined {
  if (fields === undefined) return route.responseRules
  const { set, remove } = isCors ? withoutCors(route) : (route.responseRules ?? noRules)
  // Appended after the upstream's headers of the same name: `Vary` and `RateLimit` are lists (RFC 9110 §5.3).
  return { set: [...set, ...Object.entries(fields).flat()], remove }
}

const noRules: ResponseHeaderRules = { set: [], remove: new Set() }

const known = new WeakMap<Route, ResponseHeaderRules>()

/** Computed once per route: the rules are the same for every request. */
function withoutCors(route: Route): ResponseHeaderRules {
  let rules = known.get(route)
  if (rules === undefined) {
    const { set, remove } = route.responseRules ?? noRules
    const kept = set.flatMap((name, index) =>
      index % 2 === 0 && !replacedHeaders.has(name.toLowerCase()) ? [name, set[index + 1] as string] : [],
    )
    rules = { set: kept, remove: new Set([...remove, ...replacedHeaders]) }
    known.set(route, rules)
  }
  return rules
}
