// Defines the quota guard. It counts the uses that the user's plan allows per day or month, on routes with `quota`.
import type { Period } from '../../config/formats/units.ts'
import type { Plans } from '../../config/plans.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import { quotaExceeded, quotaHeaders } from '../../refusals/limits.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { type ExhaustedQuota, type ExhaustedQuotas, exhaustedKey } from '../../usage/exhausted-quotas.ts'
import type { QuotaCounter } from '../../usage/quota-count-store.ts'
import type { Plan } from '../../users/user.ts'
import { type Admission, createCountingGuard } from './admission.ts'
import { challenge } from './authenticate.ts'
import type { TargetAvailable } from './available-target.ts'
import { readCredentials } from './credential.ts'
import type { Guard } from './guard.ts'

/** Creates a guard that refuses with 429 `quota_exceeded`. */
export type CountQuota = (quota: NonNullable<RouteConfig['quota']>) => Guard<TargetAvailable, Admission>

interface Options {
  plans: Plans
  counter: QuotaCounter
  exhausted: ExhaustedQuotas
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
}

/** A use to count against the limited allowance of the user's plan. */
interface Counted {
  readonly userId: number
  readonly plan: Plan
  readonly limit: number
  readonly period: Period
}

interface LastRefusal {
  readonly plan: Plan
  readonly cost: number
  readonly resetSeconds: number
  readonly refusal: Refusal
}

/** The maximum number of cached refusals. */
const maxLastRefusals = 1_000

export function createCountQuota({ plans, counter, exhausted, now }: Options): CountQuota {
  /** The last refusal for each exhausted quota of a user. Requests that are refused in the same second share it. */
  const lastRefusals = new Map<ExhaustedQuota, LastRefusal>()

  return ({ name, cost }) => {
    const refusalOf = (state: ExhaustedQuota, plan: Plan, remaining: number, resetSeconds: number) =>
      quotaExceeded({ ...state, plan, quota: name, cost, remaining, resetSeconds })

    function remembered(state: ExhaustedQuota, plan: Plan, leftMs: number): Refusal {
      const resetSeconds = wholeSeconds(leftMs)
      const last = lastRefusals.get(state)
      if (last?.plan === plan && last.cost === cost && last.resetSeconds === resetSeconds) return last.refusal
      const refusal = refusalOf(state, plan, Math.max(0, state.limit - state.used), resetSeconds)
      if (lastRefusals.size >= maxLastRefusals) lastRefusals.clear()
      lastRefusals.set(state, { plan, cost, resetSeconds, refusal })
      return refusal
    }

    return createCountingGuard<Counted>({
      countedOf(identity) {
        if (identity.kind !== 'user') return undefined
        const { id: userId, plan } = identity.user
        // The plan guard refuses users whose allowance is 0 or missing. So an allowance without a period is unlimited.
        const allowance = plans.allowance(plan, name)
        if (allowance?.period === undefined) return undefined
        return { userId, plan, limit: allowance.limit, period: allowance.period }
      },
      refusalFromMemory({ userId, plan, limit, period }) {
        const state = exhausted.get(exhaustedKey(userId, name))
        if (state?.limit !== limit || state.period !== period || state.cost > cost) return undefined
        const leftMs = state.untilMs - now()
        return leftMs > 0 ? remembered(state, plan, leftMs) : undefined
      },
      async count({ userId, plan, limit, period }, request) {
        const refused = exhausted.beginRead()
        const startedMs = now()
        const count = await counter.use({ userId, quota: name, period, limit, cost })
        if (count === undefined) {
          const { authorization, apiKey } = request.head
          return new Refusal('user_not_found', { headers: challenge(readCredentials(authorization, apiKey)) })
        }
        const { used, resetsAtMs, leftMs } = count
        const remaining = count.isAhead ? 0 : Math.max(0, limit - used)
        const resetSeconds = wholeSeconds(leftMs)
        if (count.counted) {
          exhausted.forget(exhaustedKey(userId, name))
          request.addHeaders(quotaHeaders(name, { limit, remaining, resetSeconds }))
          return undefined
        }
        // Postgres decided after `startedMs`, so the period does not end before `untilMs`.
        const state = { period, limit, cost, used, resetsAtMs, untilMs: startedMs + leftMs }
        if (!count.isAhead) refused(exhaustedKey(userId, name), state)
        return refusalOf(state, plan, remaining, resetSeconds)
      },
    })
  }
}

function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}
