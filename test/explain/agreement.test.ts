// Tests that `peage explain` predicts what a running gateway does. `npm run agree` compares more requests.
import { describe, expect, it } from 'vitest'
import { runAgreement } from './agreement/run.ts'

describe('`peage explain` and a running gateway', () => {
  it('have the same result for 500 generated requests to generated configurations', async () => {
    const report = await runAgreement({ seed: 20_261_121, configurations: 4, requests: 125 })
    expect(report.disagreements).toEqual([])
    expect(report.pairs).toBe(500)
    // The generated requests must lead to each of these outcomes.
    expect(report.outcomes.forwarded).toBeGreaterThan(200)
    expect(report.outcomes).toMatchObject({
      '400 path_invalid': expect.any(Number),
      '401 token_invalid': expect.any(Number),
      '401 unauthenticated': expect.any(Number),
      '403 plan_insufficient': expect.any(Number),
      '403 scope_insufficient': expect.any(Number),
      '403 bearer_required': expect.any(Number),
      '404 route_unknown': expect.any(Number),
      '405 method_not_allowed': expect.any(Number),
      '429 daily_limit_reached': expect.any(Number),
      'own endpoint': expect.any(Number),
    })
  }, 120_000)
})
