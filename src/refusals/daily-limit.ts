// The daily limit's refusal, whose sentence names the limit (spec §7, CONTRACT §4).
import { dailyLimitSentence, upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

/** @param limit uses a day @param retryAfter seconds to UTC midnight */
export function dailyLimitReached(limit: number, retryAfter: number): Refusal {
  return new Refusal('daily_limit_reached', {
    body: { error: dailyLimitSentence(limit), upgrade_url: upgradePath },
    headers: { 'retry-after': String(retryAfter) },
  })
}
