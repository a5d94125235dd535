// The guard that asks for a target to send to: no use is spent where there is none (CONTRACT §4).
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Upstream } from '../../upstream/targets/upstreams.ts'
import type { Guard } from './guard.ts'
import type { BodyAllowed } from './limit-body.ts'

declare const targeted: unique symbol

/** An identity whose request there is a target for. */
export type TargetAvailable = Identity & { readonly [targeted]: true }

export function availableTarget(
  upstream: Pick<Upstream, 'isAvailable'>,
): Guard<BodyAllowed, TargetAvailable> {
  return (_, identity) =>
    upstream.isAvailable() ? (identity as Identity as TargetAvailable) : new Refusal('upstream_unavailable')
}
