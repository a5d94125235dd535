// Reads the input of operators about users: ids, emails, passwords, plans, and changes.
import { isStorableEmail, normalizeEmail } from '../../accounts/email.ts'
import { readForeignHash } from '../../accounts/hashes/foreign-hash.ts'
import { passwordRefusal } from '../../accounts/password.ts'
import type { Plans } from '../../config/plans.ts'
import type { JsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { resettableQuotas } from '../../usage/quota-usage.ts'
import { isPlanName, type Plan, type User } from '../../users/user.ts'
import type { UserPatch } from '../../users/user-record-store.ts'
import { invalidField } from './input.ts'

/** @throws Refusal 404 if the text cannot be a user's id */
export function parseUserId(text: string | undefined): number {
  const id = parseSubject(text)
  if (id === undefined) throw notFound()
  return id
}

/** @throws Refusal 404 if there is no user */
export function orNotFound<Found>(found: Found | undefined): Found {
  if (found === undefined) throw notFound()
  return found
}

export function notFound(): Refusal {
  return new Refusal('user_not_found', { status: 404 })
}

/**
 * Reads an email. Refuses texts that cannot be an email. Some of these texts, for example a text with a NUL, would
 * cause a database error.
 */
export function readEmail(text: string): string {
  const email = normalizeEmail(text)
  if (!isStorableEmail(email)) throw new Refusal('email_invalid')
  return email
}

/** Reads the name of a plan, which need not be configured. @throws Refusal `plan_invalid` */
export function readPlanName(value: unknown): Plan {
  if (!isPlanName(value)) throw new Refusal('plan_invalid')
  return value
}

/** @throws Refusal `password_too_short`, `password_too_long`; `request_invalid` if the value is not a text */
export function readPassword(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('password')
  const refusal = passwordRefusal(value)
  if (refusal !== undefined) throw new Refusal(refusal)
  return value
}

/**
 * Reads the password hash of another system.
 * @throws Refusal `request_invalid` if the format is not accepted
 */
export function readPasswordHash(value: unknown): string {
  const read = readForeignHash(typeof value === 'string' ? value : '')
  if ('problem' in read) throw invalidField('password_hash')
  return read.hash
}

/** @throws Refusal `plan_invalid` if the plan is not configured; `request_invalid`, `email_invalid` */
export function readPatch(body: JsonObject, plans: Plans): UserPatch {
  const plan = body.value('plan')
  const isActive = body.value('is_active')
  const verified = body.value('email_verified')
  const email = body.value('email')
  return {
    ...(plan === undefined ? {} : { plan: readPlan(plan, plans) }),
    ...(isActive === undefined ? {} : { is_active: readFlag(isActive) }),
    ...(verified === undefined ? {} : { email_verified: readBoolean('email_verified', verified) }),
    ...(email === undefined ? {} : { email: readEmail(textOf('email', email)) }),
  }
}

function readPlan(value: unknown, plans: Plans): Plan {
  const name = readPlanName(value)
  if (plans.find(name) === undefined) throw new Refusal('plan_invalid')
  return name
}

function textOf(field: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidField(field)
  return value
}

function readBoolean(field: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidField(field)
  return value
}

function readFlag(value: unknown): 0 | 1 {
  if (value === 0 || value === false) return 0
  if (value === 1 || value === true) return 1
  throw invalidField('is_active')
}

/**
 * Reads which quota to reset. Undefined means that all uses are reset.
 * @throws Refusal `request_invalid` if the name is neither `free_daily` nor a quota of a configured plan
 */
export function readQuota(body: JsonObject, plans: Plans): string | undefined {
  const quota = body.value('quota')
  if (quota === undefined) return undefined
  const known = resettableQuotas(plans.all).find(name => name === quota)
  if (known === undefined) throw invalidField('quota')
  return known
}

/**
 * Returns the previous values of `plan`, `is_active` and `email_verified` for the audit, if the patch changes these
 * fields. Undefined if the patch changes none of them.
 */
export function previousFields(
  patch: UserPatch,
  before: User | undefined,
): Record<string, unknown> | undefined {
  if (before === undefined) return undefined
  const { plan, is_active } = before
  const all = { plan, is_active, email_verified: before.email_verified_at !== null }
  const changed = Object.entries(all).filter(([name]) => Object.hasOwn(patch, name))
  return changed.length === 0 ? undefined : Object.fromEntries(changed)
}

/** Returns the fields for the audit. The values of emails, passwords and hashes are replaced by the text `set`. */
export function auditedFields(fields: object): Record<string, unknown> {
  const secret = ['email', 'password', 'password_hash']
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, secret.includes(name) ? 'set' : value]),
  )
}
