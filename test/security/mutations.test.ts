// Sends mutated attacks of the corpus: paths, headers, framing, credentials and bytes. `npm run fuzz` sends more.
import { describe, expect, it } from 'vitest'
import { runs } from '../support/property-runs.ts'
import { describeWithServices } from '../support/services.ts'
import { embeddedSetup, type Setup, services } from '../support/setups.ts'
import { openArena } from './fuzz/arena.ts'
import { runCampaign } from './fuzz/campaign.ts'

function suite(setup: Setup, seed: number, cases: number): void {
  it(`violate no invariant in ${cases} cases with seed ${seed}`, async () => {
    const stores = await setup.open()
    const arena = await openArena(stores)
    try {
      const report = await runCampaign(arena, { seed, cases })
      expect(report.breaches).toEqual([])
      expect(report.cases).toBeGreaterThanOrEqual(cases)
      // Each of these outcomes must occur. If the parser refused all mutations or accepted all of them, the test would
      // prove little.
      for (const status of ['200 upstream', '400', '401', '403', '405']) {
        expect(report.byStatus[status]).toBeGreaterThan(cases / 500)
      }
    } finally {
      await arena.stop()
      await setup.drop(stores)
    }
  }, 120_000)
}

describe('mutations of the corpus (on the embedded database)', () =>
  suite(embeddedSetup, 20_260_101, runs(3_000)))

describeWithServices('mutations of the corpus (on Postgres and Redis)', () =>
  suite(services, 20_260_102, runs(2_000)),
)
