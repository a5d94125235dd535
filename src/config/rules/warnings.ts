// Warns of settings that a gateway starts with, though they are hardly what was meant.

import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { type DeclaredUpstream, declaredUpstreams, isSection, validTargets } from './declarations.ts'

/** @param validation what is already known to be invalid: nothing is concluded from it */
export function checkWarnings(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const upstreams = declaredUpstreams(yaml) ?? []
  return [
    ...upstreams.flatMap(upstream => targetsNamedTwice(yaml, validation, upstream)),
    ...unusedUpstreams(yaml, validation, upstreams),
  ]
}

function targetsNamedTwice(
  yaml: YamlSource,
  validation: Validation,
  upstream: DeclaredUpstream,
): Diagnostic[] {
  const seen = new Map<string, string>()
  return validTargets(upstream, validation).flatMap(({ pointer, origin }) => {
    const first = seen.get(origin)
    if (first === undefined) {
      seen.set(origin, `targets[${pointer.slice(pointer.lastIndexOf('/') + 1)}]`)
      return []
    }
    return [
      diagnosticAt(yaml, pointer, `is the same address as ${first}, which is sent twice as much; keep one`),
    ]
  })
}

/** None if a route names an unknown upstream: it may have meant the unused one. */
function unusedUpstreams(
  yaml: YamlSource,
  validation: Validation,
  upstreams: readonly DeclaredUpstream[],
): Diagnostic[] {
  const { routes } = yaml.value as { routes?: unknown }
  const names = new Set(upstreams.map(({ name }) => name))
  const used = new Set<unknown>()
  for (const [index, route] of (Array.isArray(routes) ? routes : [undefined]).entries()) {
    const isKnown = validation.isValid(appendToPointer(appendToPointer('/routes', index), 'upstream'))
    if (!isSection(route) || !isKnown || !names.has(String(route.upstream))) return []
    used.add(route.upstream)
  }
  return upstreams.flatMap(({ name, pointer }) => {
    if (used.has(name)) return []
    const diagnostic = diagnosticAt(yaml, pointer, 'no route leads to it')
    return [{ ...diagnostic, offset: yaml.locations.get(pointer)?.key ?? diagnostic.offset }]
  })
}
