// The guard of routes with `verified`: the user has shown that the email is theirs (CONTRACT §12, "Email").
import type { Identity } from '../../identity/identity.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Guard } from './guard.ts'
import { anonymousRefusal, type PlanAllowed } from './require-plan.ts'

declare const verified: unique symbol

/** An identity whose email is verified, where the route asks for that. */
export type EmailVerified = Identity & { readonly [verified]: true }

/** Refuses anonymous requests as the plan guard does, and unverified users with 403 `email_unverified`. */
export function requireVerified(): Guard<PlanAllowed, EmailVerified> {
  return (_, identity) => {
    if (identity.kind === 'anonymous') return anonymousRefusal()
    if (identity.user.email_verified_at === null) return new Refusal('email_unverified')
    return identity as Identity as EmailVerified
  }
}
