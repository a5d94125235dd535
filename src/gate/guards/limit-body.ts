// The guard on a body's declared length (CONTRACT §2, `max_body`). A body that is longer than it says is met while it streams.
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Guard } from './guard.ts'
import type { PlanAllowed } from './require-plan.ts'

declare const sized: unique symbol

/** An identity whose request declares no body that is too long. */
export type BodyAllowed = Identity & { readonly [sized]: true }

/** @param maxBytes nothing for no limit */
export function limitBody(maxBytes: number | undefined): Guard<PlanAllowed, BodyAllowed> {
  return ({ head }, identity) =>
    maxBytes !== undefined && (head.contentLength ?? 0) > maxBytes
      ? new Refusal('body_too_large')
      : (identity as Identity as BodyAllowed)
}
