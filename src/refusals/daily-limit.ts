// The daily limit's refusal, whose sentence names the limit (spec §7, CONTRACT §4).
import { dailyLimitSentence, upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

/** @param retryAfterSeconds until UTC midnight */
export type DailyLimitReached = (retryAfterSeconds: number) => Refusal

/** Requests refused within the same second share one refusal. @param limit uses per day */
export function createDailyLimitReached(limit: number): DailyLimitReached {
  const body = { error: dailyLimitSentence(limit), upgrade_url: upgradePath }
  let last: { retryAfterSeconds: number; refusal: Refusal } | undefined
  return retryAfterSeconds => {
    if (last?.retryAfterSeconds !== retryAfterSeconds) {
      const headers = { 'retry-after': String(retryAfterSeconds) }
      last = { retryAfterSeconds, refusal: new Refusal('daily_limit_reached', { body, headers }) }
    }
    return last.refusal
  }
}
