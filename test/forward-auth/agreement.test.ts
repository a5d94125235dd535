// Tests that the gateway decides equally about requests of clients and about questions. `npm run agree` compares more.
import { describe, expect, it } from 'vitest'
import { runBothWays } from './agreement/run.ts'

describe('a question and a request of a client', () => {
  it('have the same decision for 300 generated pairs of configuration and request', async () => {
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
