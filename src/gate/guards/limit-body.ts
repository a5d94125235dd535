// Refuses a body by its declared length (CONTRACT §2, `max_body`); an undeclared one is checked while it streams.
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Guard } from './guard.ts'
import type { EmailVerified } from './require-verified.ts'

declare const sized: unique symbol

/** An identity whose request declares no oversized body. */
export type BodyAllowed = Identity & { readonly [sized]: true }

/** @param maxBytes `undefined` for no limit */
export function limitBody(maxBytes: number | undefined): Guard<EmailVerified, BodyAllowed> {
  return ({ head }, identity) =>
    maxBytes !== undefined && (head.contentLength ?? 0) > maxBytes
      ? new Refusal('body_too_large')
      : (identity as Identity as BodyAllowed)
}
