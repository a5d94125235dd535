// Sends many mutated attacks in concurrent lanes. The first attack that breaks a security rule ends the run, and is
// reduced to a smaller attack.
import fc from 'fast-check'
import type { Arena } from './arena.ts'
import { type Attack, attack } from './attack.ts'
import { type Breach, type Counts, openRange } from './range.ts'

export interface Plan {
  readonly seed: number
  readonly cases: number
  /** The time limit in milliseconds. The run ends after this time, or after `cases` attacks. */
  readonly within?: number
  readonly lanes?: number
  /** Is called after every thousand cases, with the number of cases so far. */
  onProgress?(cases: number): void
}

export interface Report extends Counts {
  cases: number
  readonly breaches: readonly Breach[]
}

/** The number of cases that a lane generates before it uses the next seed. */
const perRound = 100

/** Runs a campaign. The same seed, number of cases and number of lanes lead to the same attacks. */
export async function runCampaign(arena: Arena, plan: Plan): Promise<Report> {
  const { seed, lanes = 64, onProgress } = plan
  const end = performance.now() + (plan.within ?? Number.POSITIVE_INFINITY)
  const range = openRange(arena)
  const breaches: Breach[] = []
  let cases = 0
  let isOver = false
  let seeds = 0

  async function lane(share: number): Promise<void> {
    for (let left = share; left > 0 && !isOver; left -= perRound) await round(Math.min(perRound, left))
  }

  async function round(numRuns: number): Promise<void> {
    let violations: string[] = []
    // The lane that finds a breach continues and shrinks the attack. All other lanes stop.
    let isShrinking = false
    const property = fc.asyncProperty(attack, async one => {
      if (!isShrinking) {
        isOver ||= performance.now() > end
        if (isOver) return
        cases += 1
        if (cases % 1_000 === 0) onProgress?.(cases)
      }
      const found = await range.fire(one)
      if (found.length === 0) return
      isShrinking = true
      isOver = true
      violations = found
      throw new Error(found.join('; '))
    })
    const result = await fc.check(property, { seed: (seed + seeds++) | 0, numRuns })
    if (result.failed) breaches.push(range.breach((result.counterexample as [Attack])[0], violations))
  }

  const share = Math.ceil(plan.cases / lanes)
  await Promise.all(Array.from({ length: lanes }, () => lane(share)))
  breaches.push(...(await range.settle()))
  return { ...range.counts, cases, breaches }
}
