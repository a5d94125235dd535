// Builds the headers that identify the caller, for an upstream or for the response to the question of a proxy.
import { identityNames } from '../config/formats/header-names.ts'
import type { Route } from '../gate/routing/route.ts'
import { type Identity, namedKeyOf } from '../identity/identity.ts'

/**
 * Adds the identity headers that have a value.
 * @param assertion the signed identity, on routes with `identity_assertion`
 */
export function addIdentity(fields: string[], route: Route, identity: Identity, assertion?: string): void {
  if (identity.kind !== 'user') return
  fields.push('x-user-id', String(identity.user.id), 'x-user-plan', identity.user.plan)
  if (route.forward_email) fields.push('x-user-email', fieldSafe(identity.user.email))
  const key = namedKeyOf(identity)
  if (key !== undefined) fields.push('x-user-key-id', key.id)
  if (key !== undefined && key.scopes !== null) fields.push('x-user-scopes', key.scopes.join(' '))
  if (assertion !== undefined) fields.push('x-peage-assertion', assertion)
}

/**
 * All identity headers, with empty values. A proxy that receives them in a response replaces the client's headers with
 * them.
 */
export const noIdentity: readonly string[] = [...identityNames].flatMap(name => [name, ''])

/** Returns all identity headers. A header for which the caller has no value is empty. */
export function wholeIdentity(route: Route, identity: Identity, assertion?: string): string[] {
  const known: string[] = []
  addIdentity(known, route, identity, assertion)
  const names = new Set(known.filter((_, index) => index % 2 === 0))
  for (const name of identityNames) if (!names.has(name)) known.push(name, '')
  return known
}

/**
 * Encodes an email for a header. The email may contain characters other than ASCII, so it is percent-encoded as in a
 * mailto URI.
 */
function fieldSafe(text: string): string {
  return text.replace(/[^\x21-\x24\x26-\x7e]/gu, character => encodeURIComponent(character))
}
