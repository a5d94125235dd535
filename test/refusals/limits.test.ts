// A 429 response contains the waiting time and the limit. A 429 response for the daily limit also contains the upgrade
// URL.
import { describe, expect, it } from 'vitest'
import { createDailyLimitReached, rateLimited, rateLimitHeaders } from '../../src/refusals/limits.ts'

/** Converts a flat list of names and values to an object. */
function fieldsOf(fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])),
  )
}

const state = { limit: 20, windowMs: 90_500, remaining: 7, resetSeconds: 42 }

describe('a rate limit', () => {
  it('is sent in the RateLimit headers of the IETF draft, with the window rounded up to whole seconds', () => {
    expect(rateLimitHeaders('route', state)).toEqual({
      'ratelimit-policy': '"route";q=20;w=91',
      ratelimit: '"route";r=7;t=42',
    })
  })

  it('causes refusals with Retry-After, and these refusals always show 0 remaining requests', () => {
    const refusal = rateLimited(
      { policy: 'refresh', key: 'auth.rate_limits.refresh' },
      { ...state, remaining: 3 },
    )
    expect([refusal.status, refusal.code, refusal.reason]).toEqual([
      429,
      'rate_limited',
      'auth.rate_limits.refresh',
    ])
    expect(fieldsOf(refusal.response('fr').fields)).toMatchObject({
      'retry-after': '42',
      'ratelimit-policy': '"refresh";q=20;w=91',
      ratelimit: '"refresh";r=0;t=42',
    })
  })
})

describe('the daily limit', () => {
  it('is in the refusal, together with the upgrade URL and the seconds until the end of the day', () => {
    const refusal = createDailyLimitReached(3)(7_200)
    const { fields, body } = refusal.response('fr')
    expect([refusal.status, refusal.code]).toEqual([429, 'daily_limit_reached'])
    expect(JSON.parse(Buffer.from(body, 'latin1').toString())).toEqual({
      error: 'Limite quotidienne atteinte (plan free: 3 courses/jour)',
      upgrade_url: '/api/v1/subscription/upgrade',
    })
    expect(fieldsOf(fields)['retry-after']).toBe('7200')
  })

  it('reuses one refusal for equal waiting times, and creates a new one if the time differs', () => {
    const reached = createDailyLimitReached(1)
    const first = reached(10)
    expect(reached(10)).toBe(first)
    expect([9, 10].map(seconds => fieldsOf(reached(seconds).response('fr').fields)['retry-after'])).toEqual([
      '9',
      '10',
    ])
  })
})
