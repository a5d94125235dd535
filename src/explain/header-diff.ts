// What becomes of header fields on the way through the gateway: found by sending some that it may not let pass.
import { identityNames } from '../config/formats/header-names.ts'
import { replacedFields } from '../gate/routing/cors.ts'
import type { Route } from '../gate/routing/route.ts'
import type { FieldList } from './stub-request.ts'

export interface FieldChanges {
  /** What is there and was not sent, or not with that value, by name in lower case. */
  readonly set: Readonly<Record<string, string>>
  /** What was sent and is not there any more, in lower case. */
  readonly remove: readonly string[]
}

export const noChanges: FieldChanges = { set: {}, remove: [] }

/** Fields of a client's to try a route with, beside those that it was asked with; hop-by-hop ones are no news. */
export function tryingRequest({ requestRules }: Route, asked: FieldList): FieldList {
  return withoutTwins([...asked, ...clientFields, ...named(requestRules?.remove)])
}

/** Fields of an upstream's answer to try a route with. */
export function tryingAnswer({ answerRules }: Route): FieldList {
  return withoutTwins([...named([...replacedFields, 'x-peage-error']), ...named(answerRules?.remove)])
}

export function setBetween(sent: FieldList, received: FieldList): FieldChanges['set'] {
  const before = joined(sent)
  const set = [...joined(received)].filter(([name, value]) => before.get(name) !== value)
  return Object.fromEntries(set.sort(byName))
}

export function removedBetween(sent: FieldList, received: FieldList): FieldChanges['remove'] {
  const after = joined(received)
  return [...joined(sent).keys()].filter(name => !after.has(name)).sort()
}

const value = 'tried'

const clientFields: FieldList = [
  ...named(identityNames),
  ['x-forwarded-for', '198.51.100.1'],
  ['x-forwarded-proto', value],
  ['x-forwarded-host', 'tried.example'],
  ...named(['authorization', 'x-api-key', 'forwarded', 'x-real-ip', 'x-forwarded-prefix']),
  ...named(['x-http-method-override', 'x-original-url', 'x-rewrite-url']),
]

function named(names: Iterable<string> = []): FieldList {
  return [...names].map(name => [name, value] as const)
}

function withoutTwins(fields: FieldList): FieldList {
  const seen = new Set<string>()
  return fields.filter(([name]) => !seen.has(name.toLowerCase()) && seen.add(name.toLowerCase()))
}

function joined(fields: FieldList): Map<string, string> {
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
