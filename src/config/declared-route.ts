// The routes of a file as the rules see them: of each route the keys that are sound, whatever the others are.
import { parseHost } from './addresses.ts'
import type { Sheet } from './document.ts'
import { type PathPattern, parsePathPattern } from './path-pattern.ts'
import { pointTo } from './pointer.ts'
import { type Fault, joinPath } from './problem.ts'
import type { WrittenRoute } from './schema.ts'
import type { Shape } from './shape.ts'

/** What is not sound is `undefined`, and nothing may be concluded from it. */
export interface DeclaredRoute {
  /** `routes[0]` */
  readonly label: string
  readonly keys: Partial<WrittenRoute>
  readonly pattern: PathPattern | undefined
  /** As requests are compared with; empty for every host. */
  readonly hosts: readonly string[] | undefined
  /** With HEAD where GET is; `all` where none is declared. */
  readonly methods: readonly string[] | 'all' | undefined
  /** Upstream and guards are all as they were meant. */
  readonly guardsKnown: boolean
  /** A fault at the value of one key. */
  fault(key: keyof WrittenRoute, message: string): Fault
  /** A fault further in: at the key itself of a mapping, at the item of a list. */
  faultWithin(steps: readonly (string | number)[], message: string): Fault
}

export function declaredRoutes(sheet: Sheet, shape: Shape): DeclaredRoute[] {
  const { routes } = sheet.value as { routes?: unknown }
  if (!Array.isArray(routes)) return []
  return routes.flatMap((route, index) =>
    typeof route === 'object' && route !== null && !Array.isArray(route)
      ? [declaredRoute(sheet, shape, route, pointTo('/routes', index), `routes[${index}]`)]
      : [],
  )
}

function declaredRoute(
  sheet: Sheet,
  shape: Shape,
  written: object,
  pointer: string,
  label: string,
): DeclaredRoute {
  const sound = (key: keyof WrittenRoute) => shape.sound(pointTo(pointer, key))
  const keys: Partial<WrittenRoute> = Object.fromEntries(
    Object.entries(written).filter(([key]) => sound(key as keyof WrittenRoute)),
  )
  return {
    label,
    keys,
    pattern: keys.path === undefined ? undefined : parsePathPattern(keys.path),
    hosts: keys.hosts?.map(parseHost),
    methods: sound('methods') ? methodsOf(keys) : undefined,
    guardsKnown: (['upstream', 'auth', 'plans', 'free_daily'] as const).every(sound),
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
function methodsOf({ methods }: Partial<WrittenRoute>): readonly string[] | 'all' {
  if (methods === undefined) return 'all'
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}
