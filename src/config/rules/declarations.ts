// Returns the upstreams and routes of a file for the rules. If an upstream or a route has invalid keys, its valid keys
// are still returned.
import { appendToPointer, type Diagnostic, joinPath } from '../diagnostics.ts'
import { parseRouteHost, parseTarget } from '../formats/addresses.ts'
import { type PathPattern, parsePathPattern } from '../formats/path-pattern.ts'
import { readQuota } from '../sections/routes.ts'
import type { RouteConfig, RouteInput } from '../sections/schema.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import type { YamlSource } from '../yaml/yaml-source.ts'
import type { DeclaredPlans } from './declared-plans.ts'

export interface DeclaredUpstream {
  readonly name: string
  readonly pointer: string
  /** The keys and values of the upstream, before validation. Empty if the upstream is not a mapping. */
  readonly keys: Readonly<Record<string, unknown>>
}

/** @returns `undefined` if `upstreams` is not a mapping */
export function declaredUpstreams(yaml: YamlSource): DeclaredUpstream[] | undefined {
  const { upstreams } = yaml.value as { upstreams?: unknown }
  if (!isMapping(upstreams)) return undefined
  return Object.entries(upstreams).map(([name, keys]) => ({
    name,
    pointer: appendToPointer('/upstreams', name),
    keys: isMapping(keys) ? keys : {},
  }))
}

export function validTargets(
  { pointer, keys: { targets } }: DeclaredUpstream,
  validation: Validation,
): { pointer: string; origin: string; weight: number | undefined }[] {
  if (!Array.isArray(targets)) return []
  return targets.flatMap((target: unknown, index) => {
    const at = appendToPointer(appendToPointer(pointer, 'targets'), index)
    const url = targetUrl(target)
    if (url === undefined || !validation.isValid(at)) return []
    const weight = isMapping(target) && typeof target.weight === 'number' ? target.weight : undefined
    return [{ pointer: at, origin: parseTarget(url), weight }]
  })
}

export function targetUrl(target: unknown): string | undefined {
  const url = isMapping(target) ? target.url : target
  return typeof url === 'string' ? url : undefined
}

/** A route of the file. Invalid parts are `undefined`, and the rules must skip them. */
export interface DeclaredRoute {
  /** For example `routes[0]`. */
  readonly label: string
  readonly pointer: string
  readonly keys: Partial<RouteInput>
  /** All keys and values that the file contains for the route, before validation. */
  readonly written: Readonly<Record<string, unknown>>
  readonly pattern: PathPattern | undefined
  /**
   * The valid hosts and wildcards, normalized in the same way as the hosts of requests. An empty list means every host.
   */
  readonly hosts: readonly string[] | undefined
  /** The valid methods. HEAD is added if the list contains GET. `all` if the route has no `methods`. */
  readonly methods: readonly string[] | 'all' | undefined
  /** The quota and the cost of a request. Undefined if the route has no quota, or an invalid one. */
  readonly quota: RouteConfig['quota']
  /** The declared plans that may use the route. Undefined if the key `plans` is invalid. */
  readonly plans: readonly string[] | undefined
  /** Whether the route has no upstream, because it is only for forward auth. */
  readonly isForwardAuthOnly: boolean
  /**
   * Whether the upstream and all guards of the route are valid. If the route also has a quota, each of its plans has an
   * allowance for this quota.
   */
  readonly guardsKnown: boolean
  /**
   * Whether a value of the route is valid, including everything below this value. The steps lead from the route to the
   * value.
   */
  isValid(steps: readonly (string | number)[]): boolean
  diagnostic(key: keyof RouteInput, message: string): Diagnostic
  /**
   * Creates a diagnostic for a nested value. The diagnostic points at the key in a mapping, or at the item in a list.
   */
  diagnosticWithin(steps: readonly (string | number)[], message: string): Diagnostic
}

/** Whether the file has the section `server.forward_auth`. Routes then need no upstream. */
export function hasForwardAuth(yaml: YamlSource): boolean {
  const { server } = yaml.value as { server?: unknown }
  return isMapping(server) && server.forward_auth !== undefined
}

export function declaredRoutes(
  yaml: YamlSource,
  validation: Validation,
  plans: DeclaredPlans,
): DeclaredRoute[] {
  const { routes } = yaml.value as { routes?: unknown }
  if (!Array.isArray(routes)) return []
  return routes.flatMap((route, index) =>
    isMapping(route)
      ? [declaredRoute(yaml, validation, plans, route, appendToPointer('/routes', index), `routes[${index}]`)]
      : [],
  )
}

function declaredRoute(
  yaml: YamlSource,
  validation: Validation,
  declaredPlans: DeclaredPlans,
  written: Readonly<Record<string, unknown>>,
  pointer: string,
  label: string,
): DeclaredRoute {
  const isValid = (steps: readonly (string | number)[]) =>
    validation.isValid(steps.reduce<string>(appendToPointer, pointer))
  const keys: Partial<RouteInput> = Object.fromEntries(
    Object.entries(written).filter(([key]) => isValid([key])),
  )
  const validItems = (key: 'hosts' | 'methods') => {
    if (isValid([key])) return keys[key]
    const list: unknown[] = Array.isArray(written[key]) ? written[key] : []
    const items = list.filter((item): item is string => typeof item === 'string')
    const known = items.filter(item => isValid([key, list.indexOf(item)]))
    return known.length > 0 ? known : undefined
  }
  const methods = validItems('methods')
  const quota = keys.quota === undefined ? undefined : readQuota(keys.quota)
  const { names, isKnown, allowance } = declaredPlans
  const { plans: listed } = keys
  const declared = listed === undefined ? names : names.filter(name => listed.includes(name))
  const plans = isValid(['plans']) ? declared : undefined
  const isForwardAuthOnly = written.upstream === undefined && isValid(['upstream']) && hasForwardAuth(yaml)
  return {
    label,
    pointer,
    keys,
    written,
    pattern: keys.path === undefined ? undefined : parsePathPattern(keys.path),
    hosts: validItems('hosts')?.map(parseRouteHost),
    methods: methods === undefined ? (isValid(['methods']) ? 'all' : undefined) : withHead(methods),
    quota,
    plans,
    isForwardAuthOnly,
    guardsKnown:
      (keys.upstream !== undefined || isForwardAuthOnly) &&
      (
        ['upstream', 'auth', 'scope', 'bearer_only', 'plans', 'verified', 'free_daily', 'quota'] as const
      ).every(key => isValid([key])) &&
      (listed ?? []).every(isKnown) &&
      (quota === undefined || plans?.every(plan => allowance(plan, quota.name) !== undefined) === true),
    isValid,
    diagnostic: (key, message) => ({
      offset: yaml.locations.get(appendToPointer(pointer, key))?.value ?? 0,
      path: `${label}.${key}`,
      message,
    }),
    diagnosticWithin: (steps, message) => {
      const location = yaml.locations.get(steps.reduce<string>(appendToPointer, pointer))
      return {
        offset: location?.key ?? location?.value ?? 0,
        path: steps.reduce<string>(joinPath, label),
        message,
      }
    },
  }
}

/** A route for GET also receives HEAD requests. */
function withHead(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

/**
 * Whether two upstream names belong to the same service. Equal names always do, even if the file declares no upstream
 * with this name. All routes without upstream (`undefined`) belong to one service.
 */
export type SameService = (one: string | undefined, other: string | undefined) => boolean

/** Describes what two routes to the same service have in common, for messages. */
export function sharedUpstream({ isForwardAuthOnly }: Pick<DeclaredRoute, 'isForwardAuthOnly'>): string {
  return isForwardAuthOnly ? 'no upstream either' : 'the same upstream'
}

/**
 * Two upstreams are the same service if they share a target.
 * @param origins the targets of each upstream, as `parseTarget` returns them
 */
export function sharedTargets(origins: ReadonlyMap<string, readonly string[]>): SameService {
  const named = new Map([...origins].map(([name, targets]) => [name, new Set(targets)]))
  return (one, other) => {
    if (one === other) return true
    if (one === undefined || other === undefined) return false
    const theirs = named.get(other)
    return theirs !== undefined && (origins.get(one)?.some(origin => theirs.has(origin)) ?? false)
  }
}
