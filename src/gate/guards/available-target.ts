// Requires an available target with a free share for the client. It runs before the daily count, so that no use is
// wasted.
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
