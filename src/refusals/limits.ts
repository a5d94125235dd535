// Creates the refusals (429) of rate limits, connection limits, the daily limit and quotas. The headers of rate limits
// follow draft-ietf-httpapi-ratelimit-headers-09.
import { dailyLimitSentence, quotaSentence, upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

export interface RateLimitState {
  /** The number of requests per window. It is infinite if the limit is off. */
  limit: number
  windowMs: number
  /** Requests left in the window. */
  remaining: number
  /** Whole seconds, at least 1, until the window ends. */
  resetSeconds: number
}

export interface LimitNames {
  /** The name of the limit in the response headers. */
  readonly policy: string
  /** The configuration key for the log, for example `auth.rate_limits.register` or `routes.courses.rate_limit`. */
  readonly key: string
}

export function rateLimited({ policy, key }: LimitNames, state: RateLimitState): Refusal {
  return new Refusal('rate_limited', {
    reason: key,
    headers: {
      'retry-after': String(state.resetSeconds),
      ...rateLimitHeaders(policy, { ...state, remaining: 0 }),
    },
  })
}

export interface ConnectionLimit {
  readonly limit: number
  /** The configuration key for the log, for example `upstreams.courses.connections_per_client`. */
  readonly key: string
}

/**
 * Creates the refusal for a client that already has `limit` open connections to a service. This limit has no time
 * window. So the headers contain the quota unit `concurrent-requests` (draft-ietf-httpapi-ratelimit-headers-10).
 */
export function tooManyConnections({ limit, key }: ConnectionLimit): Refusal {
  return new Refusal('rate_limited', {
    reason: key,
    headers: {
      'retry-after': '1',
      'ratelimit-policy': `"connections";q=${limit};qu="concurrent-requests"`,
      ratelimit: '"connections";r=0;t=1',
    },
  })
}

/**
 * Returns the headers that show how many requests the client has left. Responses to allowed requests have these headers
 * too.
 */
export function rateLimitHeaders(
  policy: string,
  { limit, windowMs, remaining, resetSeconds }: RateLimitState,
) {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}

/** The headers that are lists. Each limit that checked the request adds one member, in the order of the checks. */
const headersOfLimits: ReadonlySet<string> = new Set(['ratelimit-policy', 'ratelimit'])

/**
 * Merges both sets of headers. A header of `added` replaces the header of the same name in `before`. Rate-limit headers
 * are lists, so their values are appended instead.
 */
export function appendHeaders(
  before: Readonly<Record<string, string>> | undefined,
  added: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const all: Record<string, string> = { ...before, ...added }
  for (const name of headersOfLimits) {
    const [first, next] = [before?.[name], added[name]]
    if (first !== undefined && next !== undefined) all[name] = `${first}, ${next}`
  }
  return all
}

/**
 * Returns the headers of a refusal, followed by the headers of the request's context. Rate-limit headers become one
 * list: first the limits that allowed the request, then the limit that refuses it.
 * @param fields the headers of the refusal, as alternating names and values
 * @param ofContext the headers of the context, as alternating names and values
 */
export function fieldsWithLimits(fields: readonly string[], ofContext: readonly string[]): string[] {
  const all = [...fields]
  for (let i = 0; i < ofContext.length; i += 2) {
    const [name, value] = [ofContext[i] as string, ofContext[i + 1] as string]
    const isOfLimit = headersOfLimits.has(name)
    const at = isOfLimit ? fields.findIndex((field, index) => index % 2 === 0 && field === name) : -1
    if (at === -1) all.push(name, value)
    else all[at + 1] = `${value}, ${all[at + 1]}`
  }
  return all
}

/**
 * Creates the refusals for users who have reached the daily limit. Their text contains the limit. All requests that are
 * refused within the same second share one `Refusal`.
 * @param limit the number of uses per day
 * @returns a function that returns the refusal; its argument is the number of seconds until UTC midnight
 */
export function createDailyLimitReached(limit: number): (retryAfterSeconds: number) => Refusal {
  const texts = dailyLimitSentence(limit)
  const body = { upgrade_url: upgradePath }
  let last: { retryAfterSeconds: number; refusal: Refusal } | undefined
  return retryAfterSeconds => {
    if (last?.retryAfterSeconds !== retryAfterSeconds) {
      const headers = { 'retry-after': String(retryAfterSeconds) }
      last = { retryAfterSeconds, refusal: new Refusal('daily_limit_reached', { texts, body, headers }) }
    }
    return last.refusal
  }
}

interface QuotaState {
  /** The allowance of the user's plan, in uses per period. */
  readonly limit: number
  /** The uses that are left in the period. */
  readonly remaining: number
  /** Whole seconds, at least 1, until the period ends. */
  readonly resetSeconds: number
}

interface RefusedUse extends QuotaState {
  readonly plan: string
  readonly quota: string
  readonly period: 'day' | 'month'
  readonly used: number
  readonly cost: number
  /** The end of the period, in milliseconds since the epoch. */
  readonly resetsAtMs: number
}

/** Creates the refusal of a use that would exceed the user's allowance. */
export function quotaExceeded(use: RefusedUse): Refusal {
  const { plan, quota, period, limit, used, cost, resetsAtMs, resetSeconds } = use
  return new Refusal('quota_exceeded', {
    reason: `plans.${plan}.quotas.${quota}`,
    texts: quotaSentence(plan, limit, quota, period),
    body: {
      quota,
      limit,
      used,
      cost,
      resets_at: inWholeSeconds(resetsAtMs),
      upgrade_url: upgradePath,
    },
    headers: { 'retry-after': String(resetSeconds), ...quotaHeaders(quota, use) },
  })
}

/**
 * Formats a time without fractions of a second, for example `2026-12-01T00:00:00Z`.
 * @param timeMs milliseconds since the epoch
 */
export function inWholeSeconds(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`
}

/**
 * Returns the headers that show how much of a quota the user has left. Refusals and responses to counted requests have
 * these headers.
 */
export function quotaHeaders(quota: string, { limit, remaining, resetSeconds }: QuotaState) {
  return {
    'ratelimit-policy': `"quota:${quota}";q=${limit}`,
    ratelimit: `"quota:${quota}";r=${remaining};t=${resetSeconds}`,
  }
}
