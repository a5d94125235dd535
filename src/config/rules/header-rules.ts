// Checks which headers `routes[].headers` may set and remove. Headers that the gateway sets itself and headers for
// message framing are refused.
import type { Diagnostic } from '../diagnostics.ts'
import { canonicalName, identityNames, isHopByHop } from '../formats/header-names.ts'
import { isMapping } from '../sections/shape.ts'
import type { DeclaredRoute } from './declarations.ts'

type Direction = 'request' | 'response'

/** Checks every valid header, even if other headers are invalid. */
export function checkHeaders(route: DeclaredRoute): Diagnostic[] {
  const { headers } = route.written
  if (!isMapping(headers)) return []
  return (['request', 'response'] as const).flatMap(direction => {
    const changes = headers[direction]
    if (!isMapping(changes)) return []
    return [
      ...(isMapping(changes.set) ? checkSet(route, direction, changes.set) : []),
      ...(Array.isArray(changes.remove) ? checkRemove(route, direction, changes.remove) : []),
    ]
  })
}

function checkSet(route: DeclaredRoute, direction: Direction, set: Record<string, unknown>): Diagnostic[] {
  const taken = new Set<string>()
  return Object.entries(set).flatMap(([name, value]) => {
    const steps = ['headers', direction, 'set', name]
    const canonical = canonicalName(name)
    const wrong = [
      nameError(direction, name) ??
        (taken.has(canonical) ? 'is set twice in different spellings; keep one' : undefined),
      typeof value === 'string' && route.isValid(steps)
        ? ((isHost(direction, name) ? hostError(value) : undefined) ?? valueError(value))
        : undefined,
    ]
    taken.add(canonical)
    return wrong.flatMap(message => (message === undefined ? [] : [route.diagnosticWithin(steps, message)]))
  })
}

function checkRemove(route: DeclaredRoute, direction: Direction, remove: readonly unknown[]): Diagnostic[] {
  return remove.flatMap((name, index) => {
    const steps = ['headers', direction, 'remove', index]
    if (typeof name !== 'string' || !route.isValid(steps)) return []
    const wrong = nameError(direction, name) ?? (isHost(direction, name) ? hostNotRemovable : undefined)
    return wrong === undefined ? [] : [route.diagnosticWithin(steps, wrong)]
  })
}

function nameError(direction: Direction, name: string): string | undefined {
  if (!namePattern.test(name))
    return 'is not a valid header name; use letters and digits, with -, _ or . between them'
  const canonical = canonicalName(name)
  if (direction === 'request' && identityNames.has(canonical)) {
    return 'identifies the caller and is managed by the gateway; remove this entry'
  }
  if (isHopByHop(canonical) || framingNames.has(canonical)) {
    return 'belongs to the message framing or the connection and is managed by the gateway; remove this entry'
  }
  return gatewayNames.has(canonical) ? 'is managed by the gateway; remove this entry' : undefined
}

function hostError(value: string): string | undefined {
  return hostPattern.test(value) ? undefined : 'must be a host name, with an optional port'
}

function valueError(value: string): string | undefined {
  if (valuePattern.test(value)) return undefined
  return 'must be printable ASCII, without white space at the start or end'
}

const isHost = (direction: Direction, name: string) =>
  direction === 'request' && canonicalName(name) === 'host'

const hostNotRemovable = 'is required in every request (RFC 9112 §3.2); set another value instead'

// RFC 9110 §5.1 allows more characters. But servers interpret names with other characters in different ways, so these
// names are refused.
const namePattern = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/
const valuePattern = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/
const framingNames = new Set(['connection', 'content-length'])
const gatewayNames = new Set(['via', 'x-request-id'])
