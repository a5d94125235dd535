// Refuses a body whose declared length exceeds `max_body`. A body without a declared length is checked while it is
// streamed.
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Guard } from './guard.ts'
import type { EmailVerified } from './require-verified.ts'

declare const sized: unique symbol

export type BodyAllowed = Identity & { readonly [sized]: true }

/** @param maxBytes the limit; `undefined` for no limit */
export function limitBody(maxBytes: number | undefined): Guard<EmailVerified, BodyAllowed> {
  return ({ head }, identity) =>
    maxBytes !== undefined && (head.contentLength ?? 0) > maxBytes
      ? new Refusal('body_too_large')
      : (identity as Identity as BodyAllowed)
}
