// Defines a guard that refuses a request if no target is available, or if the client has used up its share of
// connections. The guard runs before the guards that count uses, so that a refused request costs no use.
import { clientKeyOf } from '../../identity/client-key.ts'
import type { Identity } from '../../identity/identity.ts'
import { tooManyConnections } from '../../refusals/limits.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Upstream } from '../../upstream/targets/upstreams.ts'
import type { Guard } from './guard.ts'
import type { BodyAllowed } from './limit-body.ts'

declare const targeted: unique symbol

export type TargetAvailable = Identity & { readonly [targeted]: true }

export type CheckedUpstream = Pick<Upstream, 'isAvailable' | 'endpointFor' | 'connectionLimit'>

export function availableTarget(upstream: CheckedUpstream): Guard<BodyAllowed, TargetAvailable> {
  return ({ head }, identity) => {
    if (upstream.endpointFor(clientKeyOf(identity, head.client)) !== undefined)
      return identity as Identity as TargetAvailable
    return upstream.isAvailable()
      ? tooManyConnections(upstream.connectionLimit)
      : new Refusal('upstream_unavailable')
  }
}
