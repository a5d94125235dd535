// Returns the upstreams and routes of a file for the rules. An upstream or a route with an invalid key still has all of
// its valid keys.
import { appendToPointer, type Diagnostic, joinPath } from '../diagnostics.ts'
import { parseHost, parseTarget } from '../formats/addresses.ts'
import { type PathPattern, parsePathPattern } from '../formats/path-pattern.ts'
import type { RouteInput } from '../sections/schema.ts'
import type { Validation } from '../validate.ts'
import type { YamlSource } from '../yaml/yaml-source.ts'

export interface DeclaredUpstream {
  readonly name: string
  readonly pointer: string
  /** The keys of the upstream and their values, which are not validated yet. Empty if the upstream is not a mapping. */
  readonly keys: Readonly<Record<string, unknown>>
}

/** @returns `undefined` if `upstreams` is not a mapping */
export function declaredUpstreams(yaml: YamlSource): DeclaredUpstream[] | undefined {
  const { upstreams } = yaml.value as { upstreams?: unknown }
  if (!isSection(upstreams)) return undefined
  return Object.entries(upstreams).map(([name, keys]) => ({
    name,
    pointer: appendToPointer('/upstreams', name),
    keys: isSection(keys) ? keys : {},
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
    const weight = isSection(target) && typeof target.weight === 'number' ? target.weight : undefined
    return [{ pointer: at, origin: parseTarget(url), weight }]
  })
}

export function targetUrl(target: unknown): string | undefined {
  const url = isSection(target) ? target.url : target
  return typeof url === 'string' ? url : undefined
}

export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A route of the file. Invalid parts are `undefined`, and the rules must skip them. */
export interface DeclaredRoute {
  /** For example `routes[0]`. */
  readonly label: string
  readonly keys: Partial<RouteInput>
  /** All keys of the route in the file and their values, which are not validated yet. */
  readonly written: Readonly<Record<string, unknown>>
  readonly pattern: PathPattern | undefined
  /** The valid hosts, normalized like the hosts of requests. An empty list means every host. */
  readonly hosts: readonly string[] | undefined
  /** The valid methods, with HEAD if GET is among them. `all` if the route declares none. */
  readonly methods: readonly string[] | 'all' | undefined
  /** Whether the upstream and all guards of the route are valid. */
  readonly guardsKnown: boolean
  /** Whether the value at this place is valid, and also everything below it. */
  isValid(steps: readonly (string | number)[]): boolean
  diagnostic(key: keyof RouteInput, message: string): Diagnostic
  /** Creates a diagnostic at a nested place: at the key in a mapping, or at the item in a list. */
  diagnosticWithin(steps: readonly (string | number)[], message: string): Diagnostic
}

export function declaredRoutes(yaml: YamlSource, validation: Validation): DeclaredRoute[] {
  const { routes } = yaml.value as { routes?: unknown }
  if (!Array.isArray(routes)) return []
  return routes.flatMap((route, index) =>
    isSection(route)
      ? [declaredRoute(yaml, validation, route, appendToPointer('/routes', index), `routes[${index}]`)]
      : [],
  )
}

function declaredRoute(
  yaml: YamlSource,
  validation: Validation,
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
  return {
    label,
    keys,
    written,
    pattern: keys.path === undefined ? undefined : parsePathPattern(keys.path),
    hosts: validItems('hosts')?.map(parseHost),
    methods: methods === undefined ? (isValid(['methods']) ? 'all' : undefined) : withHead(methods),
    guardsKnown: (['upstream', 'auth', 'plans', 'verified', 'free_daily'] as const).every(key =>
      isValid([key]),
    ),
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
 * Whether two upstream names belong to the same service. This is always true for equal names, even if the upstream is
 * unknown.
 */
export type SameService = (one: string, other: string) => boolean

/**
 * Two upstreams are the same service if they share a target.
 * @param origins the targets of each upstream, as `parseTarget` returns them
 */
export function sharedTargets(origins: ReadonlyMap<string, readonly string[]>): SameService {
  const named = new Map([...origins].map(([name, targets]) => [name, new Set(targets)]))
  return (one, other) => {
    if (one === other) return true
    const theirs = named.get(other)
    return theirs !== undefined && (origins.get(one)?.some(origin => theirs.has(origin)) ?? false)
  }
}
