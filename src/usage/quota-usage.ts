// Reads the uses of a user's quotas, and resets them.
import type { Allowance } from '../config/formats/units.ts'
import type { PlanConfig } from '../config/sections/schema.ts'
import { inWholeSeconds } from '../refusals/limits.ts'
import type { Queryable, TransactionStep } from '../storage/database.ts'
import type { User } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import type { QuotaRecordStore, QuotaRecords } from './quota-record-store.ts'

/**
 * The uses of one quota, as users and operators see them. For an unlimited quota, every field except `name` is null.
 */
export interface QuotaUsage {
  readonly name: string
  readonly period: Allowance['period'] | null
  readonly limit: number | null
  readonly used: number | null
  readonly remaining: number | null
  /** The end of the current period, for example `2026-12-01T00:00:00Z`. */
  readonly resets_at: string | null
}

/**
 * Returns the uses of every quota in the configuration of the plan, in the same order. The store is read only if a
 * quota of the plan is limited per day or per month.
 * @param plan undefined if the user's plan is not configured; the list is then empty
 * @throws StorageError
 */
export async function readQuotaUsage(
  store: Pick<QuotaRecordStore, 'read'>,
  userId: number,
  plan: PlanConfig | undefined,
  tx?: Queryable,
): Promise<QuotaUsage[]> {
  const quotas = Object.entries(plan?.quotas ?? {})
  const isCounted = quotas.some(([, { period }]) => period !== undefined)
  const records = isCounted ? await store.read(userId, tx) : undefined
  return quotas.map(([name, allowance]) => ({ name, ...usageOf(name, allowance, records) }))
}

function usageOf(
  name: string,
  { limit, period }: Allowance,
  records: QuotaRecords | undefined,
): Omit<QuotaUsage, 'name'> {
  if (period === undefined || records === undefined) {
    const count = limit === 0 ? 0 : null
    return { period: null, limit: count, used: count, remaining: count, resets_at: null }
  }
  const record = records.uses.find(uses => uses.quota === name && uses.period === period)
  const used = record?.used ?? 0
  const remaining = record?.isAhead ? 0 : Math.max(0, limit - used)
  return { period, limit, used, remaining, resets_at: inWholeSeconds(records.ends[period].getTime()) }
}

/**
 * The name with which operators reset the daily uses of the free plan. These uses are stored in the user record. A
 * quota cannot have this name.
 */
const freeDaily = 'free_daily'

/** Returns the names that operators can reset: `free_daily`, and the names of all quotas in the configured plans. */
export function resettableQuotas(plans: readonly { readonly quotas: object }[]): readonly string[] {
  return [...new Set([freeDaily, ...plans.flatMap(({ quotas }) => Object.keys(quotas))])]
}

/**
 * Resets the uses of one quota or of `free_daily`. Without `quota`, resets all uses of the user.
 * @param inTransaction a step that runs in the same transaction
 * @returns undefined if the user does not exist
 * @throws StorageError
 */
export function resetUses(
  { users, quotaRecords }: { users: Pick<UserStore, 'resetUsage'>; quotaRecords: QuotaRecordStore },
  userId: number,
  quota: string | undefined,
  inTransaction: TransactionStep,
): Promise<User | undefined> {
  if (quota === freeDaily) return users.resetUsage(userId, inTransaction)
  if (quota !== undefined) return quotaRecords.reset(userId, quota, inTransaction)
  return users.resetUsage(userId, async tx => {
    await quotaRecords.resetAll(tx, userId)
    await inTransaction(tx)
  })
}
