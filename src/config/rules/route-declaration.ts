// The routes of a file as the rules see them: of each route the keys that are sound, whatever the others are.

import { type Fault, joinPath } from '../diagnostics.ts'
import { parseHost } from '../formats/addresses.ts'
import { type PathPattern, parsePathPattern } from '../formats/path-pattern.ts'
import { pointTo } from '../pointer.ts'
import type { WrittenRoute } from '../schema/schema.ts'
import type { Shape } from '../validate.ts'
import type { Sheet } from '../yaml/yaml-source.ts'
import { isSection } from './declared-upstreams.ts'

/** What is not sound is `undefined`, and nothing may be concluded from it. */
export interface DeclaredRoute {
  /** `routes[0]` */
  readonly label: string
  readonly keys: Partial<WrittenRoute>
  /** All that stands in the file, of any shape. */
  readonly written: Readonly<Record<string, unknown>>
  readonly pattern: PathPattern | undefined
  /** As requests are compared with, those that are sound; empty for every host. */
  readonly hosts: readonly string[] | undefined
  /** Those that are sound, with HEAD where GET is; `all` where none is declared. */
  readonly methods: readonly string[] | 'all' | undefined
  /** Upstream and guards are all as they were meant. */
  readonly guardsKnown: boolean
  /** Nothing is wrong there or further in. */
  sound(steps: readonly (string | number)[]): boolean
  /** A fault at the value of one key. */
  fault(key: keyof WrittenRoute, message: string): Fault
  /** A fault further in: at the key itself of a mapping, at the item of a list. */
  faultWithin(steps: readonly (string | number)[], message: string): Fault
}

export function declaredRoutes(sheet: Sheet, shape: Shape): DeclaredRoute[] {
  const { routes } = sheet.value as { routes?: unknown }
  if (!Array.isArray(routes)) return []
  return routes.flatMap((route, index) =>
    isSection(route)
      ? [declaredRoute(sheet, shape, route, pointTo('/routes', index), `routes[${index}]`)]
      : [],
  )
}

function declaredRoute(
  sheet: Sheet,
  shape: Shape,
  written: Readonly<Record<string, unknown>>,
  pointer: string,
  label: string,
): DeclaredRoute {
  const sound = (steps: readonly (string | number)[]) => shape.sound(steps.reduce<string>(pointTo, pointer))
  const keys: Partial<WrittenRoute> = Object.fromEntries(
    Object.entries(written).filter(([key]) => sound([key])),
  )
  const soundItems = (key: 'hosts' | 'methods') => {
    if (sound([key])) return keys[key]
    const list: unknown[] = Array.isArray(written[key]) ? written[key] : []
    const items = list.filter((item): item is string => typeof item === 'string')
    const known = items.filter(item => sound([key, list.indexOf(item)]))
    return known.length > 0 ? known : undefined
  }
  const methods = soundItems('methods')
  return {
    label,
    keys,
    written,
    pattern: keys.path === undefined ? undefined : parsePathPattern(keys.path),
    hosts: soundItems('hosts')?.map(parseHost),
    methods: methods === undefined ? (sound(['methods']) ? 'all' : undefined) : withHead(methods),
    guardsKnown: (['upstream', 'auth', 'plans', 'free_daily'] as const).every(key => sound([key])),
    sound,
    fault: (key, message) => ({
      offset: sheet.places.get(pointTo(pointer, key))?.value ?? 0,
      path: `${label}.${key}`,
      message,
    }),
    faultWithin: (steps, message) => {
      const place = sheet.places.get(steps.reduce<string>(pointTo, pointer))
      return { offset: place?.key ?? place?.value ?? 0, path: steps.reduce<string>(joinPath, label), message }
    },
  }
}

/** GET covers HEAD (CONTRACT §2). */
function withHead(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}
