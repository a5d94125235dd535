// The `upstreams` of a YAML source of any shape; validation reports whatever is not a section.
import { parseTarget } from '../formats/addresses.ts'
import { appendToPointer } from '../pointer.ts'
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

/** A mapping with any keys. */
export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
