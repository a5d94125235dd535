// What a route sets and removes in header fields, made ready for every request (`routes[].headers`).
import { canonicalName } from '../../config/formats/header-names.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { AnswerRules } from '../../upstream/response-headers.ts'

export interface FieldChanges {
  /** The Host that the upstream is told, where that is not its target's own. */
  readonly upstreamHost: string | undefined
  /** What else is changed in the request's fields, or nothing. */
  readonly requestRules: RequestRules | undefined
  /** What is changed in the upstream's answers, or nothing. */
  readonly answerRules: AnswerRules | undefined
}

export interface RequestRules {
  /** Names and values in turn. */
  readonly set: readonly string[]
  /** Canonical names, those that are set among them: an alias is the same field to some upstream. */
  readonly remove: ReadonlySet<string>
}

export function readChanges(headers: RouteConfig['headers']): FieldChanges {
  const set = Object.entries(headers?.request.set ?? {})
  const isHost = ([name]: [string, string]) => canonicalName(name) === 'host'
  return {
    upstreamHost: set.find(isHost)?.[1],
    requestRules: rulesOf(
      set.filter(field => !isHost(field)),
      headers?.request.remove,
      canonicalName,
    ),
    answerRules: rulesOf(Object.entries(headers?.response.set ?? {}), headers?.response.remove, name =>
      name.toLowerCase(),
    ),
  }
}

function rulesOf(
  set: readonly [string, string][],
  remove: readonly string[] = [],
  comparable: (name: string) => string,
): RequestRules | undefined {
  const names = new Set([...remove, ...set.map(([name]) => name)].map(comparable))
  return names.size === 0 ? undefined : { set: set.flat(), remove: names }
}
