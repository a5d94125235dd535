// Warns of settings that a gateway starts with, though they are hardly what was meant.

import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { type DeclaredUpstream, declaredUpstreams, isSection, soundTargets } from './declarations.ts'

/** @param shape what is already known to be invalid: nothing is concluded from it */
export function checkWarnings(sheet: YamlSource, shape: Validation): Diagnostic[] {
  const upstreams = declaredUpstreams(sheet) ?? []
  return [
    ...upstreams.flatMap(upstream => targetsNamedTwice(sheet, shape, upstream)),
    ...unusedUpstreams(sheet, shape, upstreams),
  ]
}

function targetsNamedTwice(sheet: YamlSource, shape: Validation, upstream: DeclaredUpstream): Diagnostic[] {
  const seen = new Map<string, string>()
  return soundTargets(upstream, shape).flatMap(({ pointer, origin }) => {
    const first = seen.get(origin)
    if (first === undefined) {
      seen.set(origin, `targets[${pointer.slice(pointer.lastIndexOf('/') + 1)}]`)
      return []
    }
    return [
      diagnosticAt(sheet, pointer, `is the same address as ${first}, which is sent twice as much; keep one`),
    ]
  })
}

/** None if a route names an unknown upstream: it may have meant the unused one. */
function unusedUpstreams(
  sheet: YamlSource,
  shape: Validation,
  upstreams: readonly DeclaredUpstream[],
): Diagnostic[] {
  const { routes } = sheet.value as { routes?: unknown }
  const names = new Set(upstreams.map(({ name }) => name))
  const used = new Set<unknown>()
  for (const [index, route] of (Array.isArray(routes) ? routes : [undefined]).entries()) {
    const isKnown = shape.isValid(appendToPointer(appendToPointer('/routes', index), 'upstream'))
    if (!isSection(route) || !isKnown || !names.has(String(route.upstream))) return []
    used.add(route.upstream)
  }
  return upstreams.flatMap(({ name, pointer }) => {
    if (used.has(name)) return []
    const fault = diagnosticAt(sheet, pointer, 'no route leads to it')
    return [{ ...fault, offset: sheet.locations.get(pointer)?.key ?? fault.offset }]
  })
}
