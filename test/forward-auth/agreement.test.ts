// Tests that the gateway makes the same decision about a client's request and about a proxy's question
// (docs/forward-auth.md). `npm run agree` compares more requests.
import { describe, expect, it } from 'vitest'
import { runBothWays } from './agreement/run.ts'

describe('a request of a client and the question of a proxy about this request', () => {
  it('get the same decision for 300 generated requests to generated configurations', async () => {
    const report = await runBothWays({ seed: 20_261_126, configurations: 4, requests: 75 })
    expect(report.disagreements).toEqual([])
    expect(report.requests).toBe(300)
    // The generated requests must lead to each of these outcomes.
    expect(report.outcomes).toMatchObject({
      '200': expect.any(Number),
      '400 path_invalid': expect.any(Number),
      '401 token_invalid': expect.any(Number),
      '403 plan_insufficient': expect.any(Number),
      '404 route_unknown': expect.any(Number),
      '405 method_not_allowed': expect.any(Number),
      '429 daily_limit_reached': expect.any(Number),
    })
  }, 120_000)
})
