// The `upstreams` of a sheet that may have any shape: what is no section of sections is the shape's to report.
import type { Sheet } from './document.ts'
import { pointTo } from './pointer.ts'

export interface DeclaredUpstream {
  readonly name: string
  readonly pointer: string
  /** Its keys, of any shape themselves; none where it is no section. */
  readonly keys: Readonly<Record<string, unknown>>
}

/** Nothing where `upstreams` is no section. */
export function declaredUpstreams(sheet: Sheet): DeclaredUpstream[] | undefined {
  const { upstreams } = sheet.value as { upstreams?: unknown }
  if (!isSection(upstreams)) return undefined
  return Object.entries(upstreams).map(([name, keys]) => ({
    name,
    pointer: pointTo('/upstreams', name),
    keys: isSection(keys) ? keys : {},
  }))
}

/** A mapping of keys, whatever they are. */
export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
