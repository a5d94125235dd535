// Returns today's uses of a user as text, with the daily limit of plan `free`.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { Configuration, Role, User } from '../api/types.ts'
import type { Speech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'

/**
 * Returns the value of `limits.free_daily`. Undefined until the value is loaded, and always undefined for roles that do
 * not see the configuration.
 */
export function useDailyLimit(role: Role): number | undefined {
  const { data } = useLoaded('daily limit', async () =>
    can(role, 'see-gateway') ? api<Configuration>('GET', '/configuration') : undefined,
  )
  const limit = data?.values.find(({ path }) => path === 'limits.free_daily')?.value
  return typeof limit === 'number' ? limit : undefined
}

type Counted = Pick<User, 'plan' | 'daily_usage' | 'last_usage_date'>

/** Returns a text, for example "3 of 3". Only plan `free` has a limit. The count restarts each UTC day. */
export function usesInWords(
  { plan, daily_usage, last_usage_date }: Counted,
  limit: number | undefined,
  { t, number }: Pick<Speech, 't' | 'number'>,
): string {
  const used = number(last_usage_date === new Date().toISOString().slice(0, 10) ? daily_usage : 0)
  return plan === 'free' && limit !== undefined ? t('usesOf', { used, limit: number(limit) }) : used
}
