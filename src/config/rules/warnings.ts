// What a gateway starts with, though it is hardly what was meant.

import type { Fault } from '../diagnostics.ts'
import { pointTo } from '../pointer.ts'
import type { Shape } from '../validate.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'
import { type DeclaredUpstream, declaredUpstreams, isSection, soundTargets } from './declared-upstreams.ts'

/** @param shape what is known to be wrong already: nothing is concluded from it */
export function checkWarnings(sheet: Sheet, shape: Shape): Fault[] {
  const upstreams = declaredUpstreams(sheet) ?? []
  return [
    ...upstreams.flatMap(upstream => targetsNamedTwice(sheet, shape, upstream)),
    ...unusedUpstreams(sheet, shape, upstreams),
  ]
}

function targetsNamedTwice(sheet: Sheet, shape: Shape, upstream: DeclaredUpstream): Fault[] {
  const seen = new Map<string, string>()
  return soundTargets(upstream, shape).flatMap(({ pointer, origin }) => {
    const first = seen.get(origin)
    if (first === undefined) {
      seen.set(origin, `targets[${pointer.slice(pointer.lastIndexOf('/') + 1)}]`)
      return []
    }
    return [faultAt(sheet, pointer, `is the same address as ${first}, which is sent twice as much; keep one`)]
  })
}

/** Not where a route names what is no upstream: it may have meant the one that nothing else leads to. */
function unusedUpstreams(sheet: Sheet, shape: Shape, upstreams: readonly DeclaredUpstream[]): Fault[] {
  const { routes } = sheet.value as { routes?: unknown }
  const names = new Set(upstreams.map(({ name }) => name))
  const used = new Set<unknown>()
  for (const [index, route] of (Array.isArray(routes) ? routes : [undefined]).entries()) {
    const isKnown = shape.sound(pointTo(pointTo('/routes', index), 'upstream'))
    if (!isSection(route) || !isKnown || !names.has(String(route.upstream))) return []
    used.add(route.upstream)
  }
  return upstreams.flatMap(({ name, pointer }) => {
    if (used.has(name)) return []
    const fault = faultAt(sheet, pointer, 'no route leads to it')
    return [{ ...fault, offset: sheet.places.get(pointer)?.key ?? fault.offset }]
  })
}
