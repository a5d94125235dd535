// Remembers which users have no uses of a quota left, until the period ends or the record changes.
import type { Period } from '../config/formats/units.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import { createRefusalCache, type OpenRefusalCache, type RefusalCache } from './refusal-cache.ts'

/** A use that was refused, because the user had too few uses of the quota left. */
export interface ExhaustedQuota {
  readonly period: Period
  /** The allowance that was applied, in uses per period. */
  readonly limit: number
  /** The cost of the refused use. Uses with this cost or a higher cost are refused too. */
  readonly cost: number
  /** The number of uses in the quota record of the user. */
  readonly used: number
  /** The end of the period, in milliseconds since the epoch. */
  readonly resetsAtMs: number
  /** The end of the period on the monotonic clock of this process (`performance.now()`). This clock does not jump. */
  readonly untilMs: number
}

/** The keys have the same format as the notifications of the change feed: `quota USER_ID QUOTA_NAME`. */
export type ExhaustedQuotas = RefusalCache<string, ExhaustedQuota>

export function exhaustedKey(userId: number, quota: string): string {
  return `quota ${userId} ${quota}`
}

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  /** The maximum number of cached refusals. Each user and quota has at most one refusal. */
  maxPairs: number
}

export function createExhaustedQuotas({
  feed,
  maxPairs,
}: Dependencies): OpenRefusalCache<string, ExhaustedQuota> {
  return createRefusalCache({
    feed,
    maxKeys: maxPairs,
    changedKey: change => (change.startsWith('quota ') ? change : undefined),
  })
}
