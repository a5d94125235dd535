// Warns of settings that are valid but probably a mistake.
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { isLookedUp } from '../formats/addresses.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, diagnosticAtKey, type YamlSource } from '../yaml/yaml-source.ts'
import { warnOfOperators } from './admin-rules.ts'
import { type DeclaredUpstream, declaredUpstreams, validTargets } from './declarations.ts'
import { warnOfMail } from './mail-rules.ts'
import { warnOfOwnListeners } from './own-listeners.ts'
import { warnOfPlans } from './plan-rules.ts'
import { warnOfProviders } from './provider-rules.ts'

export function checkWarnings(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const upstreams = declaredUpstreams(yaml) ?? []
  return [
    ...upstreams.flatMap(upstream => [
      ...targetsNamedTwice(yaml, validation, upstream),
      ...withoutWeight(yaml, validation, upstream),
      ...nothingToResolve(yaml, validation, upstream),
    ]),
    ...unusedUpstreams(yaml, validation, upstreams),
    ...warnOfOwnListeners(yaml, validation, upstreams),
    ...warnOfOperators(yaml, validation),
    ...warnOfMail(yaml, validation),
    ...warnOfPlans(yaml, validation),
    ...warnOfProviders(yaml, validation),
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
      diagnosticAt(
        yaml,
        pointer,
        `is the same address as ${first}, so both are one target with the sum of their weights; keep one`,
      ),
    ]
  })
}

function withoutWeight(yaml: YamlSource, validation: Validation, upstream: DeclaredUpstream): Diagnostic[] {
  const pointer = appendToPointer(upstream.pointer, 'targets')
  const targets = validTargets(upstream, validation)
  if (!validation.isValid(pointer) || targets.length === 0 || targets.some(({ weight }) => weight !== 0))
    return []
  return [diagnosticAt(yaml, pointer, 'all have weight 0, so every request gets a 503 response')]
}

/**
 * Warns of a `resolve` without effect, but only if the file contains this key. If the default has no effect, the author
 * made no mistake.
 */
function nothingToResolve(
  yaml: YamlSource,
  validation: Validation,
  upstream: DeclaredUpstream,
): Diagnostic[] {
  const pointer = appendToPointer(upstream.pointer, 'resolve')
  const targets = validTargets(upstream, validation)
  if (!yaml.locations.has(pointer) || !validation.isValid(appendToPointer(upstream.pointer, 'targets')))
    return []
  if (targets.some(({ origin }) => isLookedUp(origin))) return []
  return [diagnosticAt(yaml, pointer, 'has no effect, because every target is an IP address or localhost')]
}

/**
 * Warns of unused upstreams. If a route names an unknown upstream, there is no warning, because the author may have
 * meant the unused upstream.
 */
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
    if (isMapping(route) && isKnown && route.upstream === undefined) continue
    if (!isMapping(route) || !isKnown || !names.has(String(route.upstream))) return []
    used.add(route.upstream)
  }
  return upstreams.flatMap(({ name, pointer }) => {
    return used.has(name) ? [] : [diagnosticAtKey(yaml, pointer, 'no route uses this upstream')]
  })
}
