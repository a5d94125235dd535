// Defines the user record for the rest of the program.
import { isOwnName } from '../config/sections/builders.ts'

/** The name of a plan. The plan of a stored user may be missing in the configuration. */
export type Plan = string

/** Returns whether a text can be the name of a plan. The database checks the same pattern. */
export function isPlanName(value: unknown): value is Plan {
  return typeof value === 'string' && isOwnName(value)
}

/** A user record. It never contains the password's hash. */
export interface User {
  /** An integer from 1 to 2^53 − 1. */
  id: number
  email: string
  plan: Plan
  is_active: 0 | 1
  /** The number of uses that were counted on `last_usage_date`. */
  daily_usage: number
  /** `YYYY-MM-DD` in UTC. */
  last_usage_date: string | null
  created_at: Date
  /** The time when the user confirmed the email. Null if the email is not verified. */
  email_verified_at: Date | null
}
