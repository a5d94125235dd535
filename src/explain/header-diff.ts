// Finds out how the gateway changes headers. It adds test headers to a message, and compares the sent headers with the
// received headers.
import { identityNames } from '../config/formats/header-names.ts'
import { replacedHeaders } from '../gate/routing/cors.ts'
import type { Route } from '../gate/routing/route.ts'
import type { HeaderList } from './stub-request.ts'

export interface HeaderDiff {
  /** Headers that the gateway added or changed, by lower-case name. */
  readonly set: Readonly<Record<string, string>>
  /** Lower-case names of headers that the gateway removed. */
  readonly remove: readonly string[]
}

export const emptyDiff: HeaderDiff = { set: {}, remove: [] }

/**
 * Returns the client's headers, plus test headers that the gateway may remove. Hop-by-hop headers are not tested,
 * because every proxy drops them.
 */
export function probeRequestHeaders({ requestRules }: Route, headers: HeaderList): HeaderList {
  return withoutDuplicates([...headers, ...probeClientHeaders, ...withProbeValue(requestRules?.remove)])
}

export function probeResponseHeaders({ responseRules }: Route): HeaderList {
  return withoutDuplicates([
    ...withProbeValue([...replacedHeaders, 'x-peage-error']),
    ...withProbeValue(responseRules?.remove),
  ])
}

export function addedHeaders(sent: HeaderList, received: HeaderList): HeaderDiff['set'] {
  const before = byLowerName(sent)
  const set = [...byLowerName(received)].filter(([name, value]) => before.get(name) !== value)
  return Object.fromEntries(set.sort(byName))
}

export function removedHeaders(sent: HeaderList, received: HeaderList): HeaderDiff['remove'] {
  const after = byLowerName(received)
  return [...byLowerName(sent).keys()].filter(name => !after.has(name)).sort()
}

const probeValue = 'tried'

const probeClientHeaders: HeaderList = [
  ...withProbeValue(identityNames),
  ['x-forwarded-for', '198.51.100.1'],
  ['x-forwarded-proto', probeValue],
  ['x-forwarded-host', 'tried.example'],
  ...withProbeValue(['authorization', 'x-api-key', 'forwarded', 'x-real-ip', 'x-forwarded-prefix']),
  ...withProbeValue(['x-http-method-override', 'x-original-url', 'x-rewrite-url']),
]

function withProbeValue(names: Iterable<string> = []): HeaderList {
  return [...names].map(name => [name, probeValue] as const)
}

function withoutDuplicates(fields: HeaderList): HeaderList {
  const seen = new Set<string>()
  return fields.filter(([name]) => !seen.has(name.toLowerCase()) && seen.add(name.toLowerCase()))
}

function byLowerName(fields: HeaderList): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    const before = values.get(lower)
    values.set(lower, before === undefined ? value : `${before}, ${value}`)
  }
  return values
}

function byName([one]: [string, string], [other]: [string, string]): number {
  return one < other ? -1 : 1
}
