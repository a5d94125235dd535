// The `upstreams` of a sheet that may have any shape: what is no section of sections is the shape's to report.
import { parseTarget } from '../formats/addresses.ts'
import { appendToPointer } from '../pointer.ts'
import type { Validation } from '../validate.ts'
import type { YamlSource } from '../yaml/yaml-source.ts'

export interface DeclaredUpstream {
  readonly name: string
  readonly pointer: string
  /** Its keys, of any shape themselves; none where it is no section. */
  readonly keys: Readonly<Record<string, unknown>>
}

/** Nothing where `upstreams` is no section. */
export function declaredUpstreams(yaml: YamlSource): DeclaredUpstream[] | undefined {
  const { upstreams } = yaml.value as { upstreams?: unknown }
  if (!isSection(upstreams)) return undefined
  return Object.entries(upstreams).map(([name, keys]) => ({
    name,
    pointer: appendToPointer('/upstreams', name),
    keys: isSection(keys) ? keys : {},
  }))
}

/** An upstream's targets that are as they should be, whatever the others are. */
export function soundTargets(
  { pointer, keys: { targets } }: DeclaredUpstream,
  shape: Validation,
): { pointer: string; origin: string }[] {
  if (!Array.isArray(targets)) return []
  return targets.flatMap((target: unknown, index) => {
    const at = appendToPointer(appendToPointer(pointer, 'targets'), index)
    return typeof target === 'string' && shape.isValid(at)
      ? [{ pointer: at, origin: parseTarget(target) }]
      : []
  })
}

/** A mapping of keys, whatever they are. */
export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
