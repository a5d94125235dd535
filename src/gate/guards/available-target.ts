// Requires an available target before the daily use is counted, so that no use is spent without one (CONTRACT §4).
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Upstream } from '../../upstream/targets/upstreams.ts'
import type { Guard } from './guard.ts'
import type { BodyAllowed } from './limit-body.ts'

declare const targeted: unique symbol

/** An identity whose request has an available target. */
export type TargetAvailable = Identity & { readonly [targeted]: true }

export function availableTarget(
  upstream: Pick<Upstream, 'isAvailable'>,
): Guard<BodyAllowed, TargetAvailable> {
  return (_, identity) =>
    upstream.isAvailable() ? (identity as Identity as TargetAvailable) : new Refusal('upstream_unavailable')
}
