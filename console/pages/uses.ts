// Returns the number of a user's uses today as text. For plan `free`, the text contains the daily limit.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { Configuration, Role, User } from '../api/types.ts'
import type { Speech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'

/**
 * Returns the value of `limits.free_daily`. The result is undefined while the value is loading. It is always undefined
 * for a role that must not read the configuration.
 */
export function useDailyLimit(role: Role): number | undefined {
  const { data } = useLoaded('daily limit', async () =>
    can(role, 'see-gateway') ? api<Configuration>('GET', '/configuration') : undefined,
  )
  const limit = data?.values.find(({ path }) => path === 'limits.free_daily')?.value
  return typeof limit === 'number' ? limit : undefined
}

type Counted = Pick<User, 'plan' | 'daily_usage' | 'last_usage_date'>

/**
 * Returns the number of uses on the current UTC day, for example "3". For plan `free`, the text contains the limit if
 * it is known, for example "3 of 5".
 */
export function usesInWords(
  { plan, daily_usage, last_usage_date }: Counted,
  limit: number | undefined,
  { t, number }: Pick<Speech, 't' | 'number'>,
): string {
  const used = number(last_usage_date === new Date().toISOString().slice(0, 10) ? daily_usage : 0)
  return plan === 'free' && limit !== undefined ? t('usesOf', { used, limit: number(limit) }) : used
}
