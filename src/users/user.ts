// The user record as the rest of the program sees it: the fields of spec §2, without the password's hash.

export const plans = ['free', 'premium', 'pro'] as const

export type Plan = (typeof plans)[number]

export function isPlan(value: unknown): value is Plan {
  return plans.some(plan => plan === value)
}

/** A user record in the field names of spec §2. The password's hash is never part of it. */
export interface User {
  /** 1 to 2^53 − 1. */
  id: number
  email: string
  plan: Plan
  is_active: 0 | 1
  /** Uses counted on `last_usage_date`. */
  daily_usage: number
  /** `YYYY-MM-DD`, in UTC. */
  last_usage_date: string | null
  created_at: Date
  /** When the user showed that the email is theirs; null before. */
  email_verified_at: Date | null
}
