// Defines the guard of routes with the option `verified`. It requires a user whose email is verified.
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Guard } from './guard.ts'
import { anonymousRefusal, type PlanAllowed } from './require-plan.ts'

declare const verified: unique symbol

export type EmailVerified = Identity & { readonly [verified]: true }

/** Refuses anonymous requests with 401 `unauthenticated`, and unverified users with 403 `email_unverified`. */
export function requireVerified(): Guard<PlanAllowed, EmailVerified> {
  return (_, identity) => {
    if (identity.kind === 'anonymous') return anonymousRefusal()
    if (identity.user.email_verified_at === null) return new Refusal('email_unverified')
    return identity as Identity as EmailVerified
  }
}
