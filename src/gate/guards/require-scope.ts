// Defines the scope guard, which refuses API keys that a route or endpoint does not accept. It never refuses an access
// token or an anonymous request.
import type { AcceptedKeys } from '../../endpoints/local-endpoint.ts'
import type { ApiKey } from '../../identity/api-keys/api-key-store.ts'
import type { Identity } from '../../identity/identity.ts'
import type { GuardCounts } from '../../observability/metrics/counters.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Route } from '../routing/route.ts'
import { type Guard, type GuardedRequest, recorded } from './guard.ts'
import type { WithinLimit } from './rate-limit.ts'

declare const scoped: unique symbol

export type ScopeAllowed = Identity & { readonly [scoped]: true }

/** Returns the refusal of an API key; undefined if the key is accepted. */
export type CheckKey = (key: Pick<ApiKey, 'scopes' | 'isApiToken'>) => Refusal | undefined

/** Creates the check of a route, which refuses API keys with 403 `bearer_required` or `scope_insufficient`. */
export function checkKeyForRoute({ scope, bearer_only }: Pick<Route, 'scope' | 'bearer_only'>): CheckKey {
  return ({ scopes }) => {
    if (bearer_only) return new Refusal('bearer_required')
    if (scopes === null || (scope !== undefined && scopes.includes(scope))) return undefined
    return new Refusal('scope_insufficient', { body: { required: scope ?? null } })
  }
}

/** Creates the check of one of the gateway's own endpoints, which refuses API keys with 403 `bearer_required`. */
export function checkKeyForEndpoint(accepted: AcceptedKeys): CheckKey {
  return ({ isApiToken }) =>
    accepted === 'all' || (accepted === 'api_token' && isApiToken)
      ? undefined
      : new Refusal('bearer_required')
}

/** Creates the guard. For requests without an API key, the guard has nothing to decide, so no decision is counted. */
export function requireScope(check: CheckKey, decisions: GuardCounts): Guard<WithinLimit, ScopeAllowed> {
  const guard = recorded('scope', decisions, (_: GuardedRequest, key: ApiKey) => check(key) ?? key)
  return (request, identity) => {
    const passed = identity as Identity as ScopeAllowed
    if (identity.kind === 'anonymous' || identity.apiKey === undefined) return passed
    const result = guard(request, identity.apiKey)
    return result instanceof Refusal ? result : passed
  }
}
