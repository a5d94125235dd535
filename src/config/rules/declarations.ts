// The upstreams and routes of a file as the rules see them: of each the valid keys, whatever the others are.
import { appendToPointer, type Diagnostic, joinPath } from '../diagnostics.ts'
import { parseHost, parseTarget } from '../formats/addresses.ts'
import { type PathPattern, parsePathPattern } from '../formats/path-pattern.ts'
import type { RouteInput } from '../sections/schema.ts'
import type { Validation } from '../validate.ts'
import type { YamlSource } from '../yaml/yaml-source.ts'

export interface DeclaredUpstream {
  readonly name: string
  readonly pointer: string
  /** Its keys, with values of any shape; empty if the upstream is not a section. */
  readonly keys: Readonly<Record<string, unknown>>
}

/** @returns `undefined` if `upstreams` is not a section */
export function declaredUpstreams(yaml: YamlSource): DeclaredUpstream[] | undefined {
  const { upstreams } = yaml.value as { upstreams?: unknown }
  if (!isSection(upstreams)) return undefined
  return Object.entries(upstreams).map(([name, keys]) => ({
    name,
    pointer: appendToPointer('/upstreams', name),
    keys: isSection(keys) ? keys : {},
  }))
}

/** The valid targets of an upstream, whatever the others are. */
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

/** Of a target in either form. */
export function targetUrl(target: unknown): string | undefined {
  const url = isSection(target) ? target.url : target
  return typeof url === 'string' ? url : undefined
}

/** A mapping with any keys. */
export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Anything invalid is `undefined`, and nothing may be concluded from it. */
export interface DeclaredRoute {
  /** `routes[0]` */
  readonly label: string
  readonly keys: Partial<RouteInput>
  /** Everything in the file, of any shape. */
  readonly written: Readonly<Record<string, unknown>>
  readonly pattern: PathPattern | undefined
  /** The valid ones, in the form that requests are compared with; empty for every host. */
  readonly hosts: readonly string[] | undefined
  /** The valid ones, with HEAD if GET is among them; `all` if none is declared. */
  readonly methods: readonly string[] | 'all' | undefined
  /** Whether upstream and guards are all valid. */
  readonly guardsKnown: boolean
  /** Whether nothing is wrong there or further down. */
  isValid(steps: readonly (string | number)[]): boolean
  /** A diagnostic at the value of one key. */
  diagnostic(key: keyof RouteInput, message: string): Diagnostic
  /** A diagnostic further down: at the key itself in a mapping, at the item in a list. */
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

/** GET covers HEAD (CONTRACT §2). */
function withHead(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

/** Whether two upstream names lead to one service; a name leads to its own, even if nothing else is known of it. */
export type SameService = (one: string, other: string) => boolean

/**
 * Upstreams are the same service if they have a target in common (CONTRACT §2, §6).
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
