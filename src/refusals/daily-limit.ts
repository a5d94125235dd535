// The daily limit's refusal, whose sentence names the limit (spec §7, CONTRACT §4).
import { dailyLimitSentence, upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

/** @param retryAfter seconds to UTC midnight */
export type DailyLimitReached = (retryAfter: number) => Refusal

/** Everybody who is refused within a second is told the same. @param limit uses a day */
export function createDailyLimitReached(limit: number): DailyLimitReached {
  const body = { error: dailyLimitSentence(limit), upgrade_url: upgradePath }
  let last: { retryAfter: number; refusal: Refusal } | undefined
  return retryAfter => {
    if (last?.retryAfter !== retryAfter) {
      const headers = { 'retry-after': String(retryAfter) }
      last = { retryAfter, refusal: new Refusal('daily_limit_reached', { body, headers }) }
    }
    return last.refusal
  }
}
