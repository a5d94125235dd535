// The routes of a file as the rules see them: of each route the keys that are sound, whatever the others are.
import { pointTo, type Sheet } from './document.ts'
import { type PathPattern, parsePathPattern } from './path-pattern.ts'
import type { Fault } from './problem.ts'
import type { WrittenRoute } from './schema.ts'
import type { Shape } from './shape.ts'

export interface DeclaredRoute {
  /** `routes[0]` */
  readonly label: string
  readonly keys: Partial<WrittenRoute>
  readonly pattern: PathPattern | undefined
  /** These keys can be relied upon: right, or rightly left out. */
  knows(...keys: (keyof WrittenRoute)[]): boolean
  /** A fault at the value of one key. */
  fault(key: keyof WrittenRoute, message: string): Fault
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
  const sound = Object.entries(written).filter(([key]) => shape.sound(pointTo(pointer, key)))
  const keys: Partial<WrittenRoute> = Object.fromEntries(sound)
  return {
    label,
    keys,
    pattern: keys.path === undefined ? undefined : parsePathPattern(keys.path),
    knows: (...wanted) => wanted.every(key => shape.sound(pointTo(pointer, key))),
    fault: (key, message) => ({
      offset: sheet.places.get(pointTo(pointer, key))?.value ?? 0,
      path: `${label}.${key}`,
      message,
    }),
  }
}
